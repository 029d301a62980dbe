// Package detect is the local detector.
package detect
