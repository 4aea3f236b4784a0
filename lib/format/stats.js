'use strict'

// trace.stats() as text. Data in, string out.

const { createInspectable } = require('./inspect')
const { formatBytes, formatCount, formatRows } = require('./rows')

/** @typedef {import('../stats').Stats} Stats */

/** @param {Stats} stats */
function formatStats (stats) {
  const { enabled, contexts, contextBytes, stacks, stackBytes, bytes, budget, spans } = stats
  return formatRows({
    tracing: enabled ? 'on' : 'off',
    engine: `${stats.engine} (${stats.engineWhy})`,
    clock: `${stats.clock} (${stats.clockWhy})`,
    contexts: `${formatCount(contexts)} in ${formatBytes(contextBytes)}`,
    stacks: `${formatCount(stacks)} in ${formatBytes(stackBytes)}, in ${formatCount(stats.chains)} chains`,
    budget: `${Math.round(bytes / budget * 100)} % of ${formatBytes(budget)} used`,
    captured: `${formatCount(stats.captured)} stacks: ${formatCount(stats.hits)} known, ` +
      `${formatCount(stats.misses)} new, ${formatCount(stats.unstored)} unconfirmed`,
    dropped: `${formatCount(stats.dropped)} hops`,
    handles: `${formatCount(stats.handles)} open`,
    spans: spans && `${formatCount(spans.open)} open, ${formatCount(spans.ended)} ended, ` +
      `${formatCount(spans.written)} written, ${formatCount(spans.waiting)} waiting, ` +
      `${formatCount(spans.dropped)} dropped`,
    fault: stats.fault
  })
}

const inspectableStats = createInspectable((/** @type {Stats} */ stats) => {
  return { text: formatStats(stats), title: 'Stats' }
})

module.exports = { inspectableStats }
