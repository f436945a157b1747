package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	watchQuery     = "?watch=true&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion="
	watchBytes     = 64 << 10
	watchBytesMany = 4 << 10
	manyWatches    = 1_000
	openingsMax    = 64
	errorLine      = `{"type":"ERROR"`
)

var processBegan = time.Now()

// clock returns the time that marks objects: monotonic, in nanoseconds since this process began.
func clock() int64 { return int64(time.Since(processBegan)) }

// watcher counts the events with a mark of this process. Until its goroutine has ended, only that
// uses the fields, except `seen` and `sum`.
type watcher struct {
	delays    []time.Duration
	unordered int
	revision  uint64
	last      time.Time
	seen      atomic.Int64
	sum       atomic.Int64
}

func (w *watcher) take(line []byte) error {
	if bytes.HasPrefix(line, []byte(bookmarkLine)) {
		return nil
	}
	if bytes.HasPrefix(line, []byte(errorLine)) {
		return fmt.Errorf("a watch was ended: %.200s", line)
	}
	due, err := strconv.ParseInt(string(textBehind(line, dueMark)), 10, 64)
	if err != nil || due == 0 {
		return nil
	}
	w.delays = append(w.delays, time.Duration(clock()-due))
	if revision, err := strconv.ParseUint(string(textBehind(line, revisionMark)), 10, 64); err != nil || revision <= w.revision {
		w.unordered++
	} else {
		w.revision = revision
	}
	w.last = time.Now()
	w.sum.Add(due)
	w.seen.Add(1)
	return nil
}

// watching is a set of open watches. Silent watches read nothing.
type watching struct {
	watchers []*watcher
	cancel   context.CancelFunc
	clients  []*client
	reading  sync.WaitGroup
	failed   faults
	protocol atomic.Value
	silent   int
}

// openWatches opens watches from the present revision on; watcher i has path i of the list of
// paths, which repeats. With 0 connections, each watch gets its own.
func openWatches(dial *dialer, asked job) (*watching, error) {
	revision, err := presentRevision(dial.client(), asked.Paths[0])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	all := &watching{cancel: cancel, silent: asked.Silent}
	connections := asked.Connections
	if connections == 0 {
		connections = asked.Clients
	}
	all.clients = dial.clients(connections)
	bufferBytes := watchBytes
	if asked.Clients >= manyWatches {
		bufferBytes = watchBytesMany
	}
	var opening sync.WaitGroup
	room := make(chan struct{}, openingsMax)
	for each := range asked.Clients {
		one := &watcher{}
		all.watchers = append(all.watchers, one)
		room <- struct{}{}
		opening.Go(func() {
			defer func() { <-room }()
			response, err := all.clients[each%connections].open(ctx, http.MethodGet, asked.Paths[each%len(asked.Paths)]+watchQuery+revision, nil)
			if err != nil {
				all.failed.add("%v", err)
				return
			}
			all.protocol.Store(response.Proto)
			if each >= asked.Clients-asked.Silent {
				return
			}
			all.reading.Go(func() {
				defer response.Body.Close()
				if err := readLines(response.Body, bufferBytes, one.take); err != nil && ctx.Err() == nil {
					all.failed.add("a watch has ended: %v", err)
				}
			})
		})
	}
	opening.Wait()
	return all, nil
}

func (all *watching) readers() []*watcher { return all.watchers[:len(all.watchers)-all.silent] }

// await returns when every reader has seen this many events, one has failed, or time is up.
func (all *watching) await(events int, late time.Duration) {
	for deadline := time.Now().Add(late); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		missing := false
		for _, one := range all.readers() {
			missing = missing || one.seen.Load() < int64(events)
		}
		all.failed.mutex.Lock()
		over := !missing || all.failed.count > 0
		all.failed.mutex.Unlock()
		if over {
			return
		}
	}
}

func (all *watching) close() {
	all.cancel()
	all.reading.Wait()
	for _, c := range all.clients {
		c.close()
	}
}

func presentRevision(c *client, path string) (string, error) {
	defer c.close()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	_, err := c.ask(http.MethodGet, path+"?limit=1", nil, func(answer []byte) error { return json.Unmarshal(answer, &list) })
	return list.Metadata.ResourceVersion, err
}
