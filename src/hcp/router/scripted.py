"""What HAProxy asks a script for, since its own rules know names of headers only from its configuration.

Two things that routes of Gateways ask for: which of a host's rules a request is for, by method, headers and query, and
which headers are changed. Requests of all others never come to the script. Like all rules it looks up what tables hold.
"""

from __future__ import annotations

import json
import re

SCRIPT = "rules.lua"
CHOOSE, REQUEST, RESPONSE = "hcp_choose", "hcp_request", "hcp_response"
# What a row begins with whose requests are told apart by more than the path.
CHOOSING = "?"
# Between the words of a choice, and between the parts of a list.
WORDS, PARTS = "|", "&"
_PLAIN = re.compile(r"[^A-Za-z0-9._~/-]")

_LUA = """\
local choices = Map.new(%(choices)s, Map._str)
local changes = Map.new(%(changes)s, Map._str)

local function decoded(text)
  return (text:gsub("%%%%(%%x%%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- Values of one name, with commas between.
local function headers(found)
  return function(name)
    local values, number = {}, 0
    while found[name] ~= nil and found[name][number] ~= nil do
      values[number + 1] = found[name][number]
      number = number + 1
    end
    return number > 0 and table.concat(values, ",") or nil
  end
end

-- The first value of each name counts.
local function parameters(query)
  local found = {}
  for name, value in (query or ""):gsub("%%+", " "):gmatch("([^&=]+)=?([^&]*)") do
    name = decoded(name)
    if found[name] == nil then
      found[name] = decoded(value)
    end
  end
  return function(name) return found[name] end
end

local function all(wanted, have)
  for name, value in wanted:gmatch("([^&=]+)=([^&]*)") do
    if have(decoded(name)) ~= decoded(value) then
      return false
    end
  end
  return true
end

local function is_at(path, how, place)
  return path == place or (how == "p" and (place == "/" or path:sub(1, #place + 1) == place .. "/"))
end

core.register_action("%(choose)s", {"http-req"}, function(txn)
  local list, count = txn:get_var("txn.row"):match("^%%?(%%x+)%%?(%%d+)$")
  txn:unset_var("txn.row")
  local path, method = txn.f:path() or "", txn.f:method()
  local header, parameter = headers(txn.http:req_get_headers()), parameters(txn.f:query())
  for number = 0, (tonumber(count) or 0) - 1 do
    local how, place, verb, names, query, row =
      (choices:lookup(list .. "#" .. number) or ""):match("^(%%a)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|(.+)$")
    if how ~= nil and is_at(path, how, decoded(place)) and (verb == "" or verb == method)
        and all(names, header) and all(query, parameter) then
      txn:set_var("txn.row", row)
      return
    end
  end
end, 0)

local function change(txn, side)
  local http = txn.http
  local act = {
    qs = http.req_set_header, qa = http.req_add_header, qd = http.req_del_header, qp = http.req_set_path,
    ps = http.res_set_header, pa = http.res_add_header, pd = http.res_del_header,
  }
  for what, name, value in (changes:lookup(txn:get_var("txn.key")) or ""):gmatch("(%%a%%a):([^&=]*)=([^&]*)") do
    if what:sub(1, 1) ~= side then
      -- Not of this side.
    elseif what:sub(2, 2) == "d" then
      act[what](http, decoded(name))
    elseif what == "qp" then
      act[what](http, decoded(value))
    else
      act[what](http, decoded(name), decoded(value))
    end
  end
end

core.register_action("%(request)s", {"http-req"}, function(txn) change(txn, "q") end, 0)
core.register_action("%(response)s", {"http-res"}, function(txn) change(txn, "p") end, 0)
"""


def script(choices: str, changes: str) -> str:
    """The Lua actions; the tables are named as files, which lie beside it."""
    names = {"choose": CHOOSE, "request": REQUEST, "response": RESPONSE}
    return _LUA % {**names, "choices": json.dumps(choices), "changes": json.dumps(changes)}


def encoded(text: str) -> str:
    """Any text as a part of a word: nothing but letters, digits and a few signs is left as it is."""
    return _PLAIN.sub(lambda found: "".join(f"%{byte:02X}" for byte in found.group().encode()), text)


def pairs(found: dict[str, str]) -> str:
    return PARTS.join(f"{encoded(name)}={encoded(value)}" for name, value in sorted(found.items()))
