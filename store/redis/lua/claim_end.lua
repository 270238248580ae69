-- KEYS: the claim. ARGV: token, given or done, retention, result.
-- Replies {1}, or {0} of one that is fenced.
local claim = read_claim(KEYS[1])
if not claim or claim.token ~= ARGV[1] then
  return { 0 }
end
if claim.state == 'held' then
  write_claim(KEYS[1], ARGV[3], 'state', ARGV[2], 'holder', '', 'result', ARGV[4])
end
return { 1 }
