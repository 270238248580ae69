package guest

// Host is the set of imported functions, one method each, on Go values. In a
// Wasm guest the imports take their place; natively a Module runs over any
// implementation. The meaning of each is in abi/README.md.
type Host interface {
	Head(buf []byte) int32
	Text(field int32, buf []byte) int32
	Leaf(index int32, buf []byte) int32
	LeafPath(index int32, buf []byte) int32
	LeafRead(index, offset int32, buf []byte) int32
	LeafSplice(index, start, end int32, text string) int32
	LeafHold(index, bytes int32) int32
	Get(pointer string, buf []byte) int32
	Edit(op int32, pointer, json string) int32
	Answer(kind int32, value string) int32
	Refuse(code, text string, retryMS int64) int32
	StateGet(scope int32, key string, buf []byte) int32
	StateSet(scope int32, key, value string) int32
	StateDel(scope int32, key string) int32
	StateAdd(scope int32, key string, delta int64, out []byte) int32
	Config(key string, buf []byte) int32
	ConfigKey(index int32, buf []byte) int32
	Note(key, value string) int32
	Log(level int32, text string) int32
	Reject(key, text string) int32

	LimitAdmit(names string, out []byte) int32
	LimitTake(name string, cost int64, out []byte) int32
	LimitSettle(id, actual int64) int32
	LimitRelease(id int64) int32

	UsageRecord() int32
	UsageAdd(name string, delta int64) int32
	UsageSum(name string, out []byte) int32

	KVGet(name, key string, buf []byte) int32
	KVPut(name, key, value string, ttlMS int64) int32

	Claim(name, key string, ttlMS int64, out []byte) int32
	ClaimRenew(name, key string, token, ttlMS int64) int32
	ClaimEnd(name, key string, token int64, result string, retentionMS int64) int32
	ClaimResult(name, key string, buf []byte) int32

	HMACSHA256(name, data string, out []byte) int32
}
