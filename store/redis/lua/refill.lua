-- KEYS: buckets, which are forgotten and so full. Replies {how many were known}.
return { redis.call('DEL', unpack(KEYS)) }
