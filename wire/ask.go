package wire

// An askedMessage is a message in the form that most APIs take.
type askedMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// messages are the history and the prompt.
func (a Ask) messages() []askedMessage {
	messages := make([]askedMessage, 0, len(a.History)+1)
	for _, m := range a.History {
		messages = append(messages, askedMessage{string(m.Role), m.Text})
	}
	return append(messages, askedMessage{"user", a.Prompt})
}

// messagesWithSystem are the same for an API in which the system text, if there is one,
// is the first message.
func (a Ask) messagesWithSystem() []askedMessage {
	if a.System == "" {
		return a.messages()
	}
	return append([]askedMessage{{"system", a.System}}, a.messages()...)
}
