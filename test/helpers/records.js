'use strict'

// Spans of a file with their references resolved, as listeners receive them.

const { Definitions } = require('../../report/read/definitions')

/**
 * @param {string | string[]} content text of a file, or its lines
 * @returns {any[]}
 */
function recordsOf (content) {
  const lines = typeof content === 'string' ? content.split('\n') : content
  const definitions = new Definitions()
  return lines.filter(Boolean).map((line) => JSON.parse(line)).filter((line) => !definitions.add(line))
    .map((line) => JSON.parse(JSON.stringify(definitions.resolve(line)))) // removes undefined values
}

module.exports = { recordsOf }
