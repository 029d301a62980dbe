//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || solaris || illumos)

package redis

// showingTheirEnd changes nothing: here the client looks at no connection either.
func showingTheirEnd(dial dialer) dialer { return dial }
