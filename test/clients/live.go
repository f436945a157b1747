package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

const (
	// sentAnnotation holds when the writer sent this version of an object, in nanoseconds of the wall
	// clock.
	sentAnnotation  = "test.strata.dev/sent"
	liveWriteEvery  = 20 * time.Millisecond
	liveWriteWithin = 20 * time.Second
	lateAfter       = 100 * time.Millisecond
	liveObjectsMax  = 200
)

// delays holds how long after its sending some informer first saw each version, and whether a store
// ever went back in time.
type delays struct {
	mutex     sync.Mutex
	seen      []time.Duration
	backwards []string
}

// lived is the result of the writes since the last report, and of how informers saw them.
type lived struct {
	Writes     int            `json:"writes"`
	Refused    map[string]int `json:"refused"`
	WriteP99Ms float64        `json:"writeP99Ms"`
	Seen       int            `json:"seen"`
	P50Ms      float64        `json:"p50Ms"`
	P99Ms      float64        `json:"p99Ms"`
	MaxMs      float64        `json:"maxMs"`
	Late       int            `json:"late"`
	Backwards  []string       `json:"backwards"`
}

// follow records every version that this informer sees, but none twice (after a relist or resync).
func (d *delays) follow(name string, informer cache.SharedInformer) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { d.note(object) },
		UpdateFunc: func(before, after any) {
			was, is := version(before), version(after)
			if was == is {
				return
			}
			d.note(after)
			if is < was {
				d.mutex.Lock()
				d.backwards = append(d.backwards, fmt.Sprintf("%s: from %d to %d", name, was, is))
				d.mutex.Unlock()
			}
		},
	})
	return err
}

func (d *delays) note(object any) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	sent, err := strconv.ParseInt(accessor.GetAnnotations()[sentAnnotation], 10, 64)
	if err != nil {
		return
	}
	d.mutex.Lock()
	d.seen = append(d.seen, time.Since(time.Unix(0, sent)))
	d.mutex.Unlock()
}

func (d *delays) take() ([]time.Duration, []string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	seen, backwards := d.seen, d.backwards
	d.seen, d.backwards = nil, nil
	return seen, backwards
}

func version(object any) uint64 {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return 0
	}
	number, _ := strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	return number
}

// liveWriter creates, changes and deletes one object after the other at a steady pace. Each write
// has a time stamp.
type liveWriter struct {
	places  []destination
	objects []liveObject
	made    int
}

type liveObject struct {
	client dynamic.ResourceInterface
	object *unstructured.Unstructured
}

var liveKinds = []struct {
	resource  schema.GroupVersionResource
	kind      string
	namespace string
	content   map[string]any
}{
	{apiExports, "APIExport", "", map[string]any{"spec": map[string]any{"n": int64(1)}}},
	{shards, "Shard", "", map[string]any{"spec": map[string]any{"baseURL": "https://127.0.0.1:1"}}},
	{clusterRoles, "ClusterRole", "", map[string]any{"rules": []any{}}},
	{roleBindings, "RoleBinding", "default", map[string]any{"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}}},
	{webhooks, "ValidatingWebhookConfiguration", "", map[string]any{}},
}

// run writes for this long. It counts a refused write and leaves its object as it is. At the end it
// waits a moment, because informers see writes later.
func (w *liveWriter) run(ctx context.Context, seen *delays, within time.Duration) lived {
	done := lived{Refused: map[string]int{}, Backwards: []string{}}
	seen.take()
	var taken []time.Duration
	pace := time.NewTicker(liveWriteEvery)
	defer pace.Stop()
	for end := time.Now().Add(within); time.Now().Before(end); <-pace.C {
		sent := time.Now()
		bounded, cancel := context.WithTimeout(ctx, liveWriteWithin)
		err := w.one(bounded)
		cancel()
		taken = append(taken, time.Since(sent))
		done.Writes++
		if err != nil {
			done.Refused[reasonOf(err)]++
		}
	}
	time.Sleep(time.Second)
	delays, backwards := seen.take()
	done.Seen = len(delays)
	done.P50Ms, done.P99Ms, done.MaxMs = share(delays, 50), share(delays, 99), share(delays, 100)
	for _, delay := range delays {
		if delay > lateAfter {
			done.Late++
		}
	}
	done.WriteP99Ms = share(taken, 99)
	done.Backwards = append(done.Backwards, backwards...)
	return done
}

func (w *liveWriter) one(ctx context.Context) error {
	choice := rand.IntN(10)
	switch {
	case len(w.objects) == 0 || (choice < 4 && len(w.objects) < liveObjectsMax):
		return w.create(ctx)
	case choice < 8:
		return w.update(ctx, rand.IntN(len(w.objects)))
	default:
		return w.remove(ctx, rand.IntN(len(w.objects)))
	}
}

func (w *liveWriter) create(ctx context.Context) error {
	w.made++
	kind, at := liveKinds[w.made%len(liveKinds)], w.places[w.made%len(w.places)]
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for member, value := range kind.content {
		object.Object[member] = value
	}
	object.SetAPIVersion(kind.resource.GroupVersion().String())
	object.SetKind(kind.kind)
	object.SetName(fmt.Sprintf("live-%d", w.made))
	object.SetNamespace(kind.namespace)
	stamp(object)
	client := at.dynamic.Resource(kind.resource).Namespace(kind.namespace)
	created, err := client.Create(ctx, object, metav1.CreateOptions{})
	if err == nil {
		w.objects = append(w.objects, liveObject{client, created})
	}
	return err
}

func (w *liveWriter) update(ctx context.Context, index int) error {
	each := w.objects[index]
	stamp(each.object)
	updated, err := each.client.Update(ctx, each.object, metav1.UpdateOptions{})
	if err != nil {
		w.forget(index)
		return err
	}
	w.objects[index].object = updated
	return nil
}

func (w *liveWriter) remove(ctx context.Context, index int) error {
	each := w.objects[index]
	w.forget(index)
	return each.client.Delete(ctx, each.object.GetName(), metav1.DeleteOptions{})
}

func (w *liveWriter) forget(index int) {
	w.objects = slices.Delete(w.objects, index, index+1)
}

func stamp(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[sentAnnotation] = strconv.FormatInt(time.Now().UnixNano(), 10)
	object.SetAnnotations(annotations)
}

func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return err.Error()
}

// share returns the value in milliseconds that this percentage of the durations does not exceed.
func share(durations []time.Duration, percent int) float64 {
	if len(durations) == 0 {
		return -1
	}
	sorted := slices.Sorted(slices.Values(durations))
	return float64(sorted[min(len(sorted)-1, len(sorted)*percent/100)].Microseconds()) / 1_000
}
