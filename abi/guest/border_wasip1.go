package guest

import "unsafe"

// border is what a Call reaches the host through: in a Wasm guest the
// imports. Its methods are called directly, never through Host, so that the
// linker drops every import that a guest does not use. A string crosses as
// its pointer and length.
type border struct{}

var _ Host = border{}

//go:wasmimport hookhost head
func importHead(buf unsafe.Pointer, size uint32) int32

func (border) Head(buf []byte) int32 { return importHead(start(buf), size(buf)) }

//go:wasmimport hookhost text
func importText(field int32, buf unsafe.Pointer, size uint32) int32

func (border) Text(field int32, buf []byte) int32 { return importText(field, start(buf), size(buf)) }

//go:wasmimport hookhost leaf
func importLeaf(index int32, buf unsafe.Pointer, size uint32) int32

func (border) Leaf(index int32, buf []byte) int32 { return importLeaf(index, start(buf), size(buf)) }

//go:wasmimport hookhost leaf_path
func importLeafPath(index int32, buf unsafe.Pointer, size uint32) int32

func (border) LeafPath(index int32, buf []byte) int32 {
	return importLeafPath(index, start(buf), size(buf))
}

//go:wasmimport hookhost leaf_read
func importLeafRead(index, offset int32, buf unsafe.Pointer, size uint32) int32

func (border) LeafRead(index, offset int32, buf []byte) int32 {
	return importLeafRead(index, offset, start(buf), size(buf))
}

//go:wasmimport hookhost leaf_splice
func importLeafSplice(index, from, to int32, text string) int32

func (border) LeafSplice(index, from, to int32, text string) int32 {
	return importLeafSplice(index, from, to, text)
}

//go:wasmimport hookhost leaf_hold
func importLeafHold(index, bytes int32) int32

func (border) LeafHold(index, bytes int32) int32 { return importLeafHold(index, bytes) }

//go:wasmimport hookhost get
func importGet(pointer string, buf unsafe.Pointer, size uint32) int32

func (border) Get(pointer string, buf []byte) int32 { return importGet(pointer, start(buf), size(buf)) }

//go:wasmimport hookhost edit
func importEdit(op int32, pointer, json string) int32

func (border) Edit(op int32, pointer, json string) int32 { return importEdit(op, pointer, json) }

//go:wasmimport hookhost answer
func importAnswer(kind int32, value string) int32

func (border) Answer(kind int32, value string) int32 { return importAnswer(kind, value) }

//go:wasmimport hookhost refuse
func importRefuse(code, text string, retryMS int64) int32

func (border) Refuse(code, text string, retryMS int64) int32 {
	return importRefuse(code, text, retryMS)
}

//go:wasmimport hookhost state_get
func importStateGet(scope int32, key string, buf unsafe.Pointer, size uint32) int32

func (border) StateGet(scope int32, key string, buf []byte) int32 {
	return importStateGet(scope, key, start(buf), size(buf))
}

//go:wasmimport hookhost state_set
func importStateSet(scope int32, key, value string) int32

func (border) StateSet(scope int32, key, value string) int32 {
	return importStateSet(scope, key, value)
}

//go:wasmimport hookhost state_del
func importStateDel(scope int32, key string) int32

func (border) StateDel(scope int32, key string) int32 { return importStateDel(scope, key) }

//go:wasmimport hookhost state_add
func importStateAdd(scope int32, key string, delta int64, out unsafe.Pointer, size uint32) int32

func (border) StateAdd(scope int32, key string, delta int64, out []byte) int32 {
	return importStateAdd(scope, key, delta, start(out), size(out))
}

//go:wasmimport hookhost config
func importConfig(key string, buf unsafe.Pointer, size uint32) int32

func (border) Config(key string, buf []byte) int32 { return importConfig(key, start(buf), size(buf)) }

//go:wasmimport hookhost config_key
func importConfigKey(index int32, buf unsafe.Pointer, size uint32) int32

func (border) ConfigKey(index int32, buf []byte) int32 {
	return importConfigKey(index, start(buf), size(buf))
}

//go:wasmimport hookhost note
func importNote(key, value string) int32

func (border) Note(key, value string) int32 { return importNote(key, value) }

//go:wasmimport hookhost log
func importLog(level int32, text string) int32

func (border) Log(level int32, text string) int32 { return importLog(level, text) }

//go:wasmimport hookhost reject
func importReject(key, text string) int32

func (border) Reject(key, text string) int32 { return importReject(key, text) }

//go:wasmimport hookhost_limit admit
func importLimitAdmit(names string, out unsafe.Pointer, size uint32) int32

func (border) LimitAdmit(names string, out []byte) int32 {
	return importLimitAdmit(names, start(out), size(out))
}

//go:wasmimport hookhost_limit take
func importLimitTake(name string, cost int64, out unsafe.Pointer, size uint32) int32

func (border) LimitTake(name string, cost int64, out []byte) int32 {
	return importLimitTake(name, cost, start(out), size(out))
}

//go:wasmimport hookhost_limit settle
func importLimitSettle(id, actual int64) int32

func (border) LimitSettle(id, actual int64) int32 { return importLimitSettle(id, actual) }

//go:wasmimport hookhost_limit release
func importLimitRelease(id int64) int32

func (border) LimitRelease(id int64) int32 { return importLimitRelease(id) }

//go:wasmimport hookhost_usage record
func importUsageRecord() int32

func (border) UsageRecord() int32 { return importUsageRecord() }

//go:wasmimport hookhost_usage add
func importUsageAdd(name string, delta int64) int32

func (border) UsageAdd(name string, delta int64) int32 { return importUsageAdd(name, delta) }

//go:wasmimport hookhost_usage sum
func importUsageSum(name string, out unsafe.Pointer, size uint32) int32

func (border) UsageSum(name string, out []byte) int32 {
	return importUsageSum(name, start(out), size(out))
}

//go:wasmimport hookhost_kv get
func importKVGet(name, key string, buf unsafe.Pointer, size uint32) int32

func (border) KVGet(name, key string, buf []byte) int32 {
	return importKVGet(name, key, start(buf), size(buf))
}

//go:wasmimport hookhost_kv put
func importKVPut(name, key, value string, ttlMS int64) int32

func (border) KVPut(name, key, value string, ttlMS int64) int32 {
	return importKVPut(name, key, value, ttlMS)
}

//go:wasmimport hookhost_claim claim
func importClaim(name, key string, ttlMS int64, out unsafe.Pointer, size uint32) int32

func (border) Claim(name, key string, ttlMS int64, out []byte) int32 {
	return importClaim(name, key, ttlMS, start(out), size(out))
}

//go:wasmimport hookhost_claim renew
func importClaimRenew(name, key string, token, ttlMS int64) int32

func (border) ClaimRenew(name, key string, token, ttlMS int64) int32 {
	return importClaimRenew(name, key, token, ttlMS)
}

//go:wasmimport hookhost_claim end
func importClaimEnd(name, key string, token int64, result string, retentionMS int64) int32

func (border) ClaimEnd(name, key string, token int64, result string, retentionMS int64) int32 {
	return importClaimEnd(name, key, token, result, retentionMS)
}

//go:wasmimport hookhost_claim result
func importClaimResult(name, key string, buf unsafe.Pointer, size uint32) int32

func (border) ClaimResult(name, key string, buf []byte) int32 {
	return importClaimResult(name, key, start(buf), size(buf))
}

//go:wasmimport hookhost_secret hmac_sha256
func importHMACSHA256(name, data string, out unsafe.Pointer, size uint32) int32

func (border) HMACSHA256(name, data string, out []byte) int32 {
	return importHMACSHA256(name, data, start(out), size(out))
}

func start(buf []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(buf)) }

func size(buf []byte) uint32 { return uint32(len(buf)) }
