package guest

import "strconv"

// Config is the stage's table `config` in the manifest, at Configure. Keys
// are dotted; the elements of an array have the keys KEY.0, KEY.1 and so on,
// and an array without elements is the value "[]".
type Config struct {
	border   border
	rejected bool
}

const emptyList = "[]"

// Get reads a value as text.
func (c *Config) Get(key string) (value string, found bool) { return configValue(c.border, key) }

// List reads the elements of an array. An empty one is found and has none.
func (c *Config) List(key string) (values []string, found bool) {
	for i := 0; ; i++ {
		value, ok := configValue(c.border, key+"."+strconv.Itoa(i))
		if !ok {
			break
		}
		values = append(values, value)
	}
	if values != nil {
		return values, true
	}
	value, _ := configValue(c.border, key)
	return nil, value == emptyList
}

// Keys lists the keys of all values.
func (c *Config) Keys() []string { return configKeys(c.border) }

// Reject says what is wrong with the value of a key. The text becomes an
// error at that place of the manifest, and the stage does not load.
func (c *Config) Reject(key, text string) {
	c.rejected = true
	c.border.Reject(key, text)
}

// Log writes a line, as Call.Log does.
func (c *Config) Log(level int32, text string) { c.border.Log(level, text) }

// Config reads a value of the configuration, empty when there is none.
func (c *Call) Config(key string) string {
	value, _ := configValue(c.border, key)
	return value
}

// ConfigKeys lists the keys of all values of the configuration.
func (c *Call) ConfigKeys() []string { return configKeys(c.border) }

func configValue(b border, key string) (string, bool) {
	value, err := readString(func(buf []byte) int32 { return b.Config(key, buf) })
	return value, err == nil
}

func configKeys(b border) []string {
	var keys []string
	for i := int32(0); ; i++ {
		key, err := readString(func(buf []byte) int32 { return b.ConfigKey(i, buf) })
		if err != nil {
			return keys
		}
		keys = append(keys, key)
	}
}
