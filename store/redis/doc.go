// Package redis keeps a [store.Store] in a Redis server.
package redis
