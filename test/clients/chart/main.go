// Reads each document that the chart renders as a line of JSON: a text in base64. For each it
// writes a line: why the type of its apiVersion and kind refuses it, or an empty text. Unknown and
// repeated fields are refused.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

type question struct {
	Document []byte `json:"document"`
}

type answer struct {
	Refused string `json:"refused"`
}

func main() {
	for _, add := range []error{certmanager.AddToScheme(scheme.Scheme), monitoring.AddToScheme(scheme.Scheme)} {
		if add != nil {
			panic(add)
		}
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	answers := json.NewEncoder(os.Stdout)
	questions := json.NewDecoder(bufio.NewReader(os.Stdin))
	for questions.More() {
		var asked question
		if err := questions.Decode(&asked); err != nil {
			panic(err)
		}
		refused := ""
		if _, _, err := decoder.Decode(asked.Document, nil, nil); err != nil {
			refused = err.Error()
		}
		if err := answers.Encode(answer{refused}); err != nil {
			panic(err)
		}
	}
}
