package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// The files of a model's folder, as Hugging Face's exporters write them.
const (
	graphName     = "model.onnx"
	tokenizerName = "tokenizer.json" //nolint:gosec // G101: it tokenizes, and is no credential
	configName    = "config.json"
)

// settings are what config.json says.
type settings struct {
	labels  []string
	padding int64
	longest int // text, in tokens
}

// longestText is how many tokens a text has at most, unless config.json says less: the
// classifiers of prompt attacks are trained on 512.
const longestText = 512

// hashFiles returns the SHA-256 of each file of a folder.
func hashFiles(dir string) (map[string]string, error) {
	hashes := make(map[string]string)
	for _, name := range []string{graphName, tokenizerName, configName} {
		hash, err := hashFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		hashes[name] = hash
	}
	return hashes, nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // G304: the operator names the folder
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// load makes the classifier of a folder whose files have the hashes.
func load(dir string, hashes map[string]string, inferences int) (*classifier, error) {
	contents := make(map[string][]byte)
	for name, want := range hashes {
		content, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // G304: the operator names the folder
		if err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
			return nil, fmt.Errorf("%s changed while it was read", name)
		}
		contents[name] = content
	}
	s, err := parseSettings(contents[configName])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configName, err)
	}
	t, err := parseTokenizer(contents[tokenizerName])
	if err != nil {
		return nil, err
	}
	return newClassifier(s, t, contents[graphName], inferences)
}

// parseSettings reads config.json.
func parseSettings(document []byte) (settings, error) {
	var file struct {
		Labels  map[string]string `json:"id2label"`
		Padding int64             `json:"pad_token_id"`
		Longest int               `json:"max_position_embeddings"`
		Problem string            `json:"problem_type"`
	}
	if err := json.Unmarshal(document, &file); err != nil {
		return settings{}, err
	}
	switch {
	case len(file.Labels) < 2:
		return settings{}, errors.New("id2label does not name two labels or more")
	case file.Problem != "" && file.Problem != "single_label_classification":
		return settings{}, fmt.Errorf("problem_type %q is not supported: the labels must exclude each other", file.Problem)
	}
	s := settings{padding: file.Padding, longest: longestText}
	if file.Longest > 0 {
		s.longest = min(s.longest, file.Longest)
	}
	for i := range len(file.Labels) {
		label, known := file.Labels[strconv.Itoa(i)]
		if !known {
			return settings{}, fmt.Errorf("id2label does not name the label %d", i)
		}
		s.labels = append(s.labels, label)
	}
	return s, nil
}
