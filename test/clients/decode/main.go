// Command decode reports which of Go's decoders refuse a document. Among them are client-go's own
// clients, which get their answers from this program instead of a server.
//
// Each line of standard input is a JSON text in base64, as {"value":"…"} or {"object":"…"}. A value
// is any JSON document; an object should be a ClusterRole. The program answers each line with a
// line of JSON: {"refused":{"name of the decoder":"why"}}.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"strata/test/clients/lines"
)

var clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}

type document struct {
	Value  []byte `json:"value"`
	Object []byte `json:"object"`
}

type verdict struct {
	Refused map[string]string `json:"refused"`
}

func main() {
	clients, err := newClients()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines.Answer(func(asked document) (verdict, error) {
		refused := map[string]string{}
		note := func(name string, err error) {
			if err != nil {
				refused[name] = err.Error()
			}
		}
		if asked.Object == nil {
			decodeValue(asked.Value, note)
		} else {
			decodeValue(asked.Object, note)
			clients.decodeObject(asked.Object, note)
		}
		return verdict{refused}, nil
	})
}

func decodeValue(text []byte, note func(string, error)) {
	var value, kubeValue any
	if !json.Valid(text) {
		note("syntax", errors.New("no JSON"))
	}
	note("encoding/json", json.Unmarshal(text, &value))
	note("sigs.k8s.io/json", kjson.UnmarshalCaseSensitivePreserveInts(text, &kubeValue))
}

// clients are client-go's clients; each request of theirs gets `answer`.
type clients struct {
	answer   []byte
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

func newClients() (*clients, error) {
	c := &clients{}
	config := &rest.Config{Host: "http://nowhere", ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	config.QPS = -1
	client := &http.Client{Transport: c}
	var err error
	if c.typed, err = kubernetes.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	if c.metadata, err = metadata.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	return c, nil
}

// RoundTrip makes clients an http.RoundTripper.
func (c *clients) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK,
		Proto:      "HTTP/1.1",
		Header:     http.Header{"Content-Type": []string{"application/json"}},
		Body:       io.NopCloser(bytes.NewReader(c.answer)),
		Request:    request,
	}, nil
}

func (c *clients) decodeObject(object []byte, note func(string, error)) {
	ctx := context.Background()
	c.answer = wrapped(`{"kind":"ClusterRoleList","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[`, object, `]}`)
	typed, err := c.typed.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	note("typed list", one(err, func() int { return len(typed.Items) }))
	untyped, err := c.dynamic.Resource(clusterRoles).List(ctx, metav1.ListOptions{})
	note("dynamic list", one(err, func() int { return len(untyped.Items) }))

	c.answer = wrapped(`{"type":"ADDED","object":`, object, "}\n")
	note("typed watch", first(c.typed.RbacV1().ClusterRoles().Watch(ctx, metav1.ListOptions{})))
	note("dynamic watch", first(c.dynamic.Resource(clusterRoles).Watch(ctx, metav1.ListOptions{})))

	// As kubectl reads a single object, and each object of a list.
	single, err := runtime.Decode(unstructured.UnstructuredJSONScheme, object)
	if _, isObject := single.(*unstructured.Unstructured); err == nil && !isObject {
		err = errors.New("a list")
	}
	note("unstructured", err)

	// For these clients, servers send the metadata alone.
	var cut struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object, &cut); err != nil {
		note("metadata", err)
	} else {
		partial := wrapped(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`, cut.Metadata, `}`)
		c.answer = wrapped(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[`, partial, `]}`)
		listed, err := c.metadata.Resource(clusterRoles).List(ctx, metav1.ListOptions{})
		note("metadata list", one(err, func() int { return len(listed.Items) }))
		c.answer = wrapped(`{"type":"ADDED","object":`, partial, "}\n")
		note("metadata watch", first(c.metadata.Resource(clusterRoles).Watch(ctx, metav1.ListOptions{})))
	}

	table := wrapped(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[],"rows":[{"cells":[],"object":`, object, `}]}`)
	note("table", kjson.UnmarshalCaseSensitivePreserveInts(table, &metav1.Table{}))
	// As `kubectl get -w` reads it.
	c.answer = wrapped(`{"type":"ADDED","object":`, table, "}\n")
	note("table watch", first(c.dynamic.Resource(clusterRoles).Watch(ctx, metav1.ListOptions{})))
}

func wrapped(before string, object []byte, after string) []byte {
	return append(append([]byte(before), object...), after...)
}

func one(err error, count func() int) error {
	if err == nil && count() != 1 {
		return fmt.Errorf("%d objects", count())
	}
	return err
}

// first returns nil if the first event has an object of the right kind.
func first(watched watch.Interface, err error) error {
	if err != nil {
		return err
	}
	defer watched.Stop()
	event, isOpen := <-watched.ResultChan()
	switch {
	case !isOpen:
		return errors.New("the watch ended")
	case event.Type == watch.Error:
		return fmt.Errorf("an error event: %v", event.Object)
	case event.Type != watch.Added:
		return fmt.Errorf("an event of type %s", event.Type)
	}
	return nil
}
