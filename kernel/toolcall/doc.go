// Package toolcall decides the tool calls of an agent.
package toolcall
