'use strict'

// Selects routes by name, with `*` for anything: `GET /users/*`.

/**
 * Returns a function that tests the name of a route, or of a span.
 * @param {string} pattern
 * @returns {(name: string) => boolean}
 */
function routePattern (pattern) {
  const parts = pattern.trim().split(/\*+/)
  if (parts.length === 1) return (name) => name === parts[0]
  const [start, ...others] = parts
  const end = String(others.pop())
  return (name) => {
    const isLong = name.length >= start.length + end.length
    if (!isLong || !name.startsWith(start) || !name.endsWith(end)) return false
    let index = start.length
    for (const part of others) {
      const position = name.indexOf(part, index)
      if (position === -1) return false
      index = position + part.length
    }
    return index <= name.length - end.length
  }
}

module.exports = { routePattern }
