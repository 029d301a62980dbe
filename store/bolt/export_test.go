package bolt

import "context"

// Hold begins what looks to others like a batch that is being written, until it is released.
func Hold(s *Store) (release func()) {
	_ = s.mu.lock(context.Background())
	return s.mu.unlock
}
