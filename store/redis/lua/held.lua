-- KEYS: the lease set. Replies {how many leases are live}.
live(KEYS[1])
return { redis.call('ZCARD', KEYS[1]) }
