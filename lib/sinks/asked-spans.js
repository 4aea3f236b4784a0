'use strict'

// Converts the queries of a span (report/path/queries.js) to separate client spans, as its children.

const { createHash } = require('node:crypto')
const { askedName } = require('../text')

const SITE = /^(.*) \((.*):(\d+):(\d+)\)(?: via \S+)?$/s
const PEER = /^\[?(.*?)\]?:(\d+)$/s

/**
 * Returns a span for each query of a span. Their ids are the same each time.
 * @param {import('../encoding/span-form').SpanRecord} record
 * @returns {any[]} records
 */
function askedSpans ({ traceId, spanId, startTimeUnixNano, attributes, resource }) {
  const asked = attributes['longstack.asked']
  if (!Array.isArray(asked)) return []
  return asked.map((question, i) => {
    const { start, ms, at: site, peer, unanswered, unsent, out, in: read, operation, system } = question
    const [, host = peer, port] = PEER.exec(peer ?? '') ?? []
    const [, name, file, line, column] = SITE.exec(site ?? '') ?? []
    const begin = BigInt(startTimeUnixNano) + nanos(start)
    return {
      traceId,
      spanId: createHash('sha256').update(`${spanId}:${i}`).digest('hex').slice(0, 16),
      parentSpanId: spanId,
      name: askedName(question),
      kind: 'CLIENT',
      startTimeUnixNano: String(begin),
      endTimeUnixNano: String(begin + nanos(ms)),
      status: { code: 'UNSET' },
      attributes: {
        'server.address': host,
        'server.port': port === undefined ? undefined : Number(port),
        'network.peer.address': port === undefined ? undefined : host,
        'code.function.name': name,
        'code.file.path': file,
        'code.line.number': line === undefined ? undefined : Number(line),
        'code.column.number': column === undefined ? undefined : Number(column),
        'db.system.name': system,
        'db.operation.name': operation?.split(' ', 1)[0],
        'db.query.summary': operation,
        'longstack.unsent_ms': unsent,
        'longstack.out_bytes': out,
        'longstack.in_bytes': read,
        'longstack.end': unanswered === true ? 'unknown' : undefined
      },
      resource
    }
  })
}

/** @param {number} ms @returns {bigint} nanoseconds */
const nanos = (ms) => BigInt(Math.round(ms * 1000)) * 1000n

module.exports = { askedSpans }
