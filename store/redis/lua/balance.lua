-- KEYS: the owner's buckets. ARGV: limit, n, p, burst. Replies {balance}.
local bucket = { n = tonumber(ARGV[2]), p = tonumber(ARGV[3]), burst = tonumber(ARGV[4]) }
return { read_level(KEYS[1], ARGV[1], bucket).units }
