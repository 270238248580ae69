-- KEYS: a shard of the index of active users. ARGV: since when.
-- Replies the users.
return check('index', 'ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf')
