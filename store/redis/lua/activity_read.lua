-- KEYS: a user's activity. Replies its fields and their values.
if not read_activity(KEYS[1]) then
  return {}
end
return redis.call('HGETALL', KEYS[1])
