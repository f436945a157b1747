package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
)

// get checks that the answer has the object, and learns its resourceVersion.
func (o *object) get(c *client) (string, error) {
	return c.ask(http.MethodGet, o.url(), nil, func(answer []byte) error {
		if !bytes.Contains(answer, []byte(`"name":"`+o.name+`"`)) {
			return fmt.Errorf("GET %s: another object: %.200s", o.url(), answer)
		}
		return o.learn(answer)
	})
}

// create counts an object that already exists as created, so that a target filled by an earlier run
// can be measured again.
func (o *object) create(c *client) (string, error) {
	o.resourceVersion = ""
	protocol, err := c.ask(http.MethodPost, o.path, o.body(0), o.learn)
	var refused *refusal
	if errors.As(err, &refused) && refused.status == http.StatusConflict {
		return o.get(c)
	}
	return protocol, err
}

func (o *object) update(c *client, due int64) (string, error) {
	return c.ask(http.MethodPut, o.url(), o.body(due), o.learn)
}

func (o *object) delete(c *client) (string, error) {
	protocol, err := c.ask(http.MethodDelete, o.url(), nil, func([]byte) error { return nil })
	var refused *refusal
	if errors.As(err, &refused) && refused.status == http.StatusNotFound {
		return protocol, nil
	}
	return protocol, err
}

func (o *object) learn(answer []byte) error {
	revision := textBehind(answer, revisionMark)
	if revision == nil {
		return fmt.Errorf("%s: no resourceVersion: %.200s", o.url(), answer)
	}
	o.resourceVersion = string(revision)
	return nil
}

const learnersMax = 16

// learnAll gets each object once, so that it can be updated.
func learnAll(c *client, objects []*object) error {
	var next atomic.Int64
	var failed faults
	var learning sync.WaitGroup
	for range learnersMax {
		learning.Go(func() {
			for at := int(next.Add(1)) - 1; at < len(objects); at = int(next.Add(1)) - 1 {
				if _, err := objects[at].get(c); err != nil {
					failed.add("%v", err)
					return
				}
			}
		})
	}
	learning.Wait()
	if failed.count > 0 {
		return errors.New(failed.first)
	}
	return nil
}
