package system
main := {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
response := {"uid": input.request.uid, "allowed": true} if count(deny) == 0
response := {"uid": input.request.uid, "allowed": false, "status": {"message": concat("; ", deny)}} if count(deny) > 0
requests := input.request.object.spec.devices.requests
tolerations contains t if t := requests[_].exactly.tolerations[_]
tolerations contains t if t := requests[_].firstAvailable[_].tolerations[_]
deny contains msg if {
	input.request.kind.kind == "ResourceClaim"
	input.request.namespace != "kube-system"
	some t in tolerations
	object.get(t, "key", "") == ""
	msg := "a toleration must name the key that it tolerates"
}
deny contains msg if {
	input.request.kind.kind == "ResourceSlice"
	driver := input.request.object.spec.driver
	key := input.request.object.spec.devices[_].taints[_].key
	not startswith(key, concat("", [driver, "/"]))
	msg := sprintf("taint key %v must begin with %v/", [key, driver])
}
deny contains msg if {
	input.request.kind.kind == "DeviceTaintRule"
	some field in ["driver", "pool"]
	object.get(object.get(input.request.object.spec, "deviceSelector", {}), field, "") == ""
	msg := sprintf("spec.deviceSelector.%v is required", [field])
}
