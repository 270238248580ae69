-- Stands before the scripts about activity. What a user did is a hash: plan,
-- minute, day, turns and tokens of the newest minute; t:DAY:STEP and k:DAY:STEP
-- count the minutes before it by turns and by tokens; cleared is the day
-- before which all are gone; until.

local function read_activity(key)
  local ends = check('activity', 'HGET', key, 'until')
  if ends and tonumber(ends) <= now then
    redis.call('DEL', key)
    ends = nil
  end
  return ends
end
