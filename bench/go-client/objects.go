package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const lineBytesMax = 16 << 20

var (
	metadataMark = []byte(`"metadata":{`)
	// Marks the annotation that body sets: when its write was due, in nanoseconds since this process
	// began.
	dueMark      = []byte(`"bench.strata.dev/round":"`)
	revisionMark = []byte(`"resourceVersion":"`)
	nameMark     = []byte(`"name":"bench-`)
)

// object is a line of the file that the bench wrote: index, resource, collection path, name and
// text, separated by tabs.
type object struct {
	index    int
	resource string
	path     string
	name     string
	text     []byte

	// Allows one write at a time, so that any conflict is the server's fault.
	writing         sync.Mutex
	resourceVersion string
}

func (o *object) url() string { return o.path + "/" + o.name }

// body returns the object's text at its resourceVersion, marked with the time at which the write is
// due.
func (o *object) body(due int64) []byte {
	inside := bytes.Index(o.text, metadataMark) + len(metadataMark)
	round := bytes.Index(o.text, dueMark) + len(dueMark)
	behind := round + bytes.IndexByte(o.text[round:], '"')
	text := make([]byte, 0, len(o.text)+64)
	text = append(text, o.text[:inside]...)
	if o.resourceVersion != "" {
		text = append(append(append(text, revisionMark...), o.resourceVersion...), `",`...)
	}
	text = append(text, o.text[inside:round]...)
	text = strconv.AppendInt(text, due, 10)
	return append(text, o.text[behind:]...)
}

// readObjects returns the objects between two indexes, of some resources or of all.
func readObjects(asked job) ([]*object, error) {
	opened, err := os.Open(asked.Objects)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	var objects []*object
	lines := bufio.NewScanner(opened)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		head := string(lines.Bytes()[:min(len(lines.Bytes()), 512)])
		parts := strings.SplitN(head, "\t", 5)
		if len(parts) != 5 {
			return nil, fmt.Errorf("no object: %.80s", head)
		}
		index, err := strconv.Atoi(parts[0])
		if err != nil {
			return nil, err
		}
		if index < asked.From || index >= asked.To || (len(asked.Resources) > 0 && !slices.Contains(asked.Resources, parts[1])) {
			continue
		}
		text := bytes.Clone(lines.Bytes()[len(head)-len(parts[4]):])
		objects = append(objects, &object{index: index, resource: parts[1], path: parts[2], name: parts[3], text: text})
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("no objects from %d to %d in %s", asked.From, asked.To, asked.Objects)
	}
	return objects, lines.Err()
}

// textBehind returns the text between a mark and the next quotation mark; nil if the mark is
// missing.
func textBehind(line, mark []byte) []byte {
	at := bytes.Index(line, mark)
	if at < 0 {
		return nil
	}
	rest := line[at+len(mark):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil
	}
	return rest[:end]
}
