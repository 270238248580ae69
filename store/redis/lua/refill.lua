-- KEYS: the owner's buckets. ARGV: limits, whose buckets are forgotten and so
-- full. Replies {how many were known}.
return { redis.call('HDEL', KEYS[1], unpack(ARGV)) }
