package audit

import "runtime"

// batchSize is how many items a goroutine works on at a time, and batchBytes how much
// they may weigh together, so that a few very large ones are not all held at once.
const (
	batchSize  = 64
	batchBytes = 1 << 20
)

// An ordered works on items with all processors and finishes them one by one, in the
// order in which they were added. Only work runs beside the caller; finish is called by
// add and drain. A bounded number of items is held.
type ordered[T any] struct {
	work   func(*T)
	finish func(*T)

	next    *batch[T]
	running []*batch[T] // oldest first
	spare   []*batch[T] // to be used again
}

type batch[T any] struct {
	items  []T
	weight int
	done   chan struct{}
}

// slot returns room for the next item, which [ordered.add] then takes. It has what an
// earlier item left there.
func (o *ordered[T]) slot() *T {
	if o.next == nil {
		o.next = o.empty()
	}
	return &o.next.items[:len(o.next.items)+1][len(o.next.items)]
}

// add takes the item that was put in the slot, which weighs so many bytes.
func (o *ordered[T]) add(weight int) {
	b := o.next
	b.items, b.weight = b.items[:len(b.items)+1], b.weight+weight
	switch {
	case b.weight >= batchBytes:
		o.drain()
	case len(b.items) == batchSize:
		o.start()
	}
}

func (o *ordered[T]) empty() *batch[T] {
	n := len(o.spare)
	if n == 0 {
		return &batch[T]{items: make([]T, 0, batchSize), done: make(chan struct{}, 1)}
	}
	b := o.spare[n-1]
	o.spare = o.spare[:n-1]
	return b
}

// start hands the next batch over, and finishes the oldest one if there are enough.
func (o *ordered[T]) start() {
	b := o.next
	o.next = nil
	o.running = append(o.running, b)
	go func() {
		for i := range b.items {
			o.work(&b.items[i])
		}
		b.done <- struct{}{}
	}()
	if len(o.running) > runtime.GOMAXPROCS(0) {
		o.finishOldest()
	}
}

func (o *ordered[T]) finishOldest() {
	b := o.running[0]
	o.running = o.running[1:]
	<-b.done
	for i := range b.items {
		o.finish(&b.items[i])
	}
	b.items, b.weight = b.items[:0], 0
	o.spare = append(o.spare, b)
}

// drain finishes everything that was added.
func (o *ordered[T]) drain() {
	if o.next != nil {
		o.start()
	}
	for len(o.running) > 0 {
		o.finishOldest()
	}
}
