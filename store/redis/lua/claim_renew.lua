-- KEYS: the claim. ARGV: token, ttl. Replies {1}, or {0} of one that is fenced.
local claim = read_claim(KEYS[1])
if not claim or claim.state ~= 'held' or claim.token ~= ARGV[1] then
  return { 0 }
end
write_claim(KEYS[1], ARGV[2])
return { 1 }
