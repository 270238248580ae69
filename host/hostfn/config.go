package hostfn

import "github.com/hookhost/hookhost/abi"

// Config reads a setting by its dotted key.
func (c *Call) Config(key string, buf []byte) int32 {
	if code := firstOf(c.here("hookhost.config"), checkKey(key)); code != abi.OK {
		return code
	}
	for _, s := range c.stage.Config {
		if s.Key == key {
			return fill(buf, s.Text)
		}
	}
	return abi.NotFound
}

// ConfigKey lists the keys of the settings.
func (c *Call) ConfigKey(index int32, buf []byte) int32 {
	if code := c.here("hookhost.config_key"); code != abi.OK {
		return code
	}
	if index < 0 || int(index) >= len(c.stage.Config) {
		return abi.NotFound
	}
	return fill(buf, c.stage.Config[index].Key)
}

type rejection struct{ key, text string }

// Reject refuses the configuration. The first one counts. An empty key means
// the whole of it.
func (c *Call) Reject(key, text string) int32 {
	if code := firstOf(c.here("hookhost.reject"), checkText(key, abi.MaxKey), checkText(text, abi.MaxState)); code != abi.OK {
		return code
	}
	if c.rejected == nil {
		c.rejected = &rejection{key, text}
	}
	return abi.OK
}

// Rejected gives what the guest said when it refused its configuration.
func (c *Call) Rejected() (key, text string, rejected bool) {
	if c.rejected == nil {
		return "", "", false
	}
	return c.rejected.key, c.rejected.text, true
}
