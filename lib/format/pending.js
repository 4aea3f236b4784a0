'use strict'

// Formats unsettled awaits as text. Data in, string out.

const { createTag } = require('../core/tag')
const { clean, formatDuration } = require('../text')
const { formatHops } = require('./hops')
const { createInspectable, printedOf } = require('./inspect')
const { placeOf } = require('./waits')

const MAX_REQUESTS = 5 // named per place

/**
 * @typedef {import('../handles/pending').PendingData} PendingData
 * @typedef {import('../handles/pending').PendingNoteCode} PendingNoteCode
 * @typedef {import('../handles/pending').PendingWaits} PendingWaits
 * @typedef {import('../handles/pending').Pending} Pending
 */

/** @type {ReturnType<typeof createTag<PendingData>>} printed data of a report, invisible on the report */
const printedWaits = createTag()

/** @type {Record<PendingNoteCode, string>} */
const sentences = {
  DISABLED: 'Tracing is off, so pending awaits are unknown. Turn it on with trace.enable().',
  FILTER: 'The filter excludes promises, so pending awaits are unknown. Add PROMISE to it.'
}

const inspectableWaits = createInspectable((/** @type {PendingWaits} */ waits) => {
  const data = printedWaits.read(waits)
  return data && { text: formatWaits(data), title: titleOf(data) }
})

const inspectableList = createInspectable((/** @type {Pending} */ list) => {
  const { note } = list
  const printed = printedOf(list, printedWaits)
  const text = printed?.length === 0 ? note : printed && formatPending(printed)
  return text === undefined ? undefined : { text, title: `${list.length} places` }
})

/**
 * Makes util.inspect print reports as text, and adds the reason if there are none.
 * @param {PendingWaits[]} list
 * @param {PendingNoteCode | undefined} code
 * @returns {Pending}
 */
function inspectablePending (list, code) {
  for (const waits of list) inspectableWaits(waits)
  const note = code === undefined ? undefined : sentences[code]
  const noted = Object.defineProperties(list, { note: { value: note }, noteCode: { value: code } })
  return inspectableList(noted)
}

/** @param {PendingData[]} groups @returns {string} */
const formatPending = (groups) => groups.map(formatWaits).join('\n\n')

/** @param {PendingData} data */
function formatWaits (data) {
  const { count, oldestMs, newestMs, hops } = data
  const [oldest, newest] = [formatDuration(oldestMs), formatDuration(newestMs)]
  const figures = count === 1 ? [`for ${oldest}`] : [`oldest ${oldest}`]
  if (newest !== oldest) figures.push(`newest ${newest}`)
  const head = [titleOf(data), ...figures, ...requestsOf(data)].join(', ')
  return hops.length === 0 ? head : `${head}\n${formatHops(hops)}`
}

/** @param {PendingData} data */
const titleOf = (data) => `${data.count} \u00d7 ${placeOf(data)}`

/** @param {PendingData} data */
function requestsOf ({ requests }) {
  const names = requests.slice(0, MAX_REQUESTS)
    .map(({ request, count }) => count === 1 ? clean(request) : `${clean(request)} (${count} \u00d7)`)
  const more = requests.length - names.length
  return more > 0 ? [...names, `${more} more requests`] : names
}

module.exports = { formatPending, inspectablePending, printedWaits, sentences }
