'use strict'

// Statistics about longstack itself. Loaded on the first query.

const records = require('./core/records')
const registry = require('./core/registry')
const allocationClock = require('./core/allocation-clock')
const faults = require('./core/faults')
const { explain } = require('./reasons')
const { createInspectable, formatBytes, formatCount, formatRows } = require('./format/inspect')
const record = require('./record/index')
const { settings } = require('./settings')
const { recorder } = require('./spans/index')
const { droppedHops } = require('./stacks/loop-folding')
const capture = require('./stacks/capture')

/**
 * @typedef {import('./reasons').EngineCode} EngineCode
 * @typedef {import('./reasons').ClockCode} ClockCode
 *
 * @typedef {object} Stats
 * @property {boolean} enabled
 * @property {string} engine `js` or `native`
 * @property {string} engineWhy reason for this engine
 * @property {EngineCode} engineCode the reason as a code
 * @property {string} clock `on` if an error's creation time identifies its callback, else `off`
 * @property {string} clockWhy reason why it is on or off
 * @property {ClockCode} clockCode
 * @property {boolean | 'print'} errors true: errors get hops; `print`: hops are added on printing. Unless
 *   true, `.stack` and `Error.prepareStackTrace` are unchanged
 * @property {number} contexts contexts with full records: those in the rings, and older ones that have not
 *   run yet
 * @property {number} contextBytes
 * @property {number} chains known chains: distinct paths through the program
 * @property {number} stacks stored stacks
 * @property {number} stackBytes
 * @property {number} bytes contextBytes plus stackBytes
 * @property {number} pending always 0: no stack is kept unformatted
 * @property {number} budget memory limit for contexts and stacks, bytes
 * @property {number} captured stacks taken
 * @property {number} hits captured (native) or formatted (js) stacks that were known
 * @property {number} misses new stacks
 * @property {number} unstored stacks whose cache key the native engine could not confirm; captured in full
 * @property {number} dropped hops lost: chains cut at 192 steps, promises past the budget
 * @property {number} handles open resources in the registry
 * @property {SpanStats | undefined} spans if spans are on: waiting ones are not written yet, dropped ones
 *   never are
 * @property {import('./record/writer').RecordStats | undefined} record during a recording
 * @property {import('./record/box').BoxStats | undefined} box with the option `box`
 * @property {string | undefined} fault first defect of longstack itself that a hook met; please report it
 * @property {string | undefined} faultCode code of the defect, or the name of its class
 *
 * @typedef {{
 *   open: number, ended: number, written: number, waiting: number, dropped: number, outputs: object[]
 * }} SpanStats
 */

/** @param {Stats} stats */
function formatStats (stats) {
  const { enabled, contexts, contextBytes, stacks, stackBytes, bytes, budget, spans, record, box } = stats
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
    record: record && `${formatCount(record.entries)} entries, ${formatCount(record.lost)} lost, ` +
      `${formatCount(record.written)} blocks written, ${formatCount(record.waiting)} waiting, ` +
      `${formatCount(record.dropped)} dropped, ${formatBytes(record.bytes)}; ring of ` +
      formatBytes(record.ringBytes),
    box: box && `${box.file ?? 'a part of the file of its process'}, ${formatBytes(box.bytes)}; ` +
      `${formatBytes(box.written)} written, ${formatCount(box.lost)} entries lost`,
    fault: stats.fault
  })
}

const inspectableStats = createInspectable((/** @type {Stats} */ stats) => {
  return { text: formatStats(stats), title: 'Stats' }
})

/** @returns {Stats} */
function readStats () {
  const firstFault = faults.first()
  const { bytes: stackBytes, dropped, firstChain, ...counts } = capture.stats()
  const { enabled, options } = settings
  const contextBytes = records.bytes()
  const engineReason = capture.reason()
  const clockCode = allocationClock.code()
  return inspectableStats({
    enabled,
    engine: capture.name,
    engineWhy: explain('engine', engineReason),
    engineCode: engineReason.code,
    clock: allocationClock.isOn ? 'on' : 'off',
    clockWhy: explain('clock', { code: clockCode }),
    clockCode,
    errors: enabled && options.errors,
    contexts: records.countLive(),
    contextBytes,
    ...counts,
    stackBytes,
    bytes: contextBytes + stackBytes,
    pending: 0,
    budget: options.budget,
    dropped: droppedHops() + dropped + records.lostCount(),
    handles: registry.size(),
    spans: recorder()?.stats(),
    record: record.stats(),
    box: record.boxStats(),
    fault: firstFault?.message,
    faultCode: firstFault?.code
  })
}

module.exports = { readStats }
