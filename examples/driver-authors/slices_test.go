// Checks the ResourceSlices that a driver generates. Copy it into the driver; it needs `tollgate` in the PATH.
package driver

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"
)

// validate fails the test if the API server of one of these releases rejects an object, or if a lint reports a warning.
func validate(t *testing.T, objects ...any) {
	t.Helper()
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("tollgate", "validate", "--kubernetes", "1.36,1.37", "--fail-on", "warn", "-o", "concise", "-")
	command.Stdin = bytes.NewReader(list)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDegradedDevice(t *testing.T) {
	validate(t, slice("gpu-node-07", device("gpu-0", "ecc")))
}

// slice and device stand for the code of the driver. Objects of k8s.io/api/resource/v1 work the same way. Set their
// TypeMeta: clients leave `apiVersion` and `kind` empty.
func slice(node string, devices ...any) any {
	return map[string]any{
		"apiVersion": "resource.k8s.io/v1",
		"kind":       "ResourceSlice",
		"metadata":   map[string]any{"name": node + "-gpu.example.com"},
		"spec": map[string]any{
			"driver":   "gpu.example.com",
			"nodeName": node,
			"pool":     map[string]any{"name": node, "generation": 1, "resourceSliceCount": 1},
			"devices":  devices,
		},
	}
}

func device(name, reason string) any {
	return map[string]any{
		"name": name,
		"taints": []any{map[string]any{
			"key":       "gpu.example.com/degraded",
			"value":     reason,
			"effect":    "NoSchedule",
			"timeAdded": "2026-11-16T09:00:00Z",
		}},
	}
}
