// Reads tags of images as kcp-operator does: for each line of standard input, a JSON object of a tag and a constraint, whether the tag is a version, and whether what
// depends on the constraint is passed. As the operator does, it passes that for a tag that is none.
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
