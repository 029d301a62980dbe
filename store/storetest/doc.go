// Package storetest holds every back-end to the contract of package store. Each
// clause is a subtest of [Run]; a back-end's own tests add what is special to
// it, such as a process that is killed or a server that does not answer.
package storetest
