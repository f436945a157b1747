// Reads image tags as kcp-operator does. Each line of standard input is a JSON object of a tag and
// a constraint. The answer says whether the tag is a version, and whether the operator passes the
// flags that depend on the constraint. Like the operator, it passes them for a tag that is no
// version.
package main

import (
	"github.com/Masterminds/semver/v3"

	"strata/test/clients/lines"
)

type question struct {
	Tag        string `json:"tag"`
	Constraint string `json:"constraint"`
}

type answer struct {
	IsVersion bool `json:"isVersion"`
	IsPassed  bool `json:"isPassed"`
}

func main() {
	lines.Answer(func(asked question) (answer, error) {
		constraint, err := semver.NewConstraint(asked.Constraint)
		if err != nil {
			return answer{}, err
		}
		version, err := semver.NewVersion(asked.Tag)
		return answer{IsVersion: err == nil, IsPassed: err != nil || constraint.Check(version)}, nil
	})
}
