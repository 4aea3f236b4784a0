'use strict'

const ids = require('../../lib/encoding/ids')
const { unixNano } = require('../../lib/encoding/times')

/**
 * Builds a record that is not a span: facts about a thread, for the verdict.
 * @param {string} name
 * @param {Record<string, unknown[]>} attributes
 * @param {number} at ms of the clock
 * @param {import('./source-texts').SourceTexts} texts
 * @returns {object}
 */
function factsRecord (name, attributes, at, { origin, resource }) {
  const time = unixNano(origin, at)
  return {
    traceId: 'f'.repeat(32), // in every sample
    spanId: ids.spanId(),
    name,
    kind: 'INTERNAL',
    startTimeUnixNano: time,
    endTimeUnixNano: time,
    status: { code: 'UNSET' },
    attributes,
    resource
  }
}

module.exports = { factsRecord }
