// Package bolt keeps a [store.Store] in one file on this machine.
package bolt
