-- KEYS: the bucket. ARGV: n, p, burst. Replies {balance}.
local bucket = { n = tonumber(ARGV[1]), p = tonumber(ARGV[2]), burst = tonumber(ARGV[3]) }
return { read_level(KEYS[1], bucket).units }
