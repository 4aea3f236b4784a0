'use strict'

// What is awaited and not settled, as text. Data in, string out.

const { createTag } = require('../core/tag')
const { clean, formatDuration, shortFrame } = require('../text')
const { formatHops } = require('./hops')
const { createInspectable } = require('./inspect')

const MAX_REQUESTS = 5 // named, of a place

/**
 * @typedef {import('../handles/pending').PendingData} PendingData
 * @typedef {import('../handles/pending').PendingNoteCode} PendingNoteCode
 * @typedef {import('../handles/pending').PendingWaits} PendingWaits
 * @typedef {import('../handles/pending').Pending} Pending
 */

/** @type {ReturnType<typeof createTag<PendingData>>} what a report prints, invisible on the report */
const printedWaits = createTag()

/** @type {Record<PendingNoteCode, string>} */
const sentences = {
  DISABLED: 'Tracing is off: what is awaited is not known. trace.enable() turns it on.',
  FILTER: 'The filter leaves promises out: what is awaited is not known. Add PROMISE to it.'
}

const inspectableWaits = createInspectable((/** @type {PendingWaits} */ waits) => {
  const data = printedWaits.read(waits)
  return data && { text: formatWaits(data), title: titleOf(data) }
})

const inspectableList = createInspectable((/** @type {Pending} */ list) => {
  const printed = list.map((waits) => printedWaits.read(waits))
  if (printed.includes(undefined)) return undefined // the program has put in others
  const { note } = list
  if (printed.length === 0) return note === undefined ? undefined : { text: note, title: '0 places' }
  const text = formatPending(/** @type {PendingData[]} */ (printed))
  return { text, title: `${printed.length} places` }
})

/**
 * Lets util.inspect print reports as text, and adds why there are none.
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
function titleOf ({ count, label, at: place }) {
  const text = place === undefined ? clean(label) : `${clean(label)} at ${clean(shortFrame(place))}`
  return `${count} \u00d7 ${text}`
}

/** @param {PendingData} data */
function requestsOf ({ requests }) {
  const names = requests.slice(0, MAX_REQUESTS)
    .map(({ request, count }) => count === 1 ? clean(request) : `${clean(request)} (${count} \u00d7)`)
  const more = requests.length - names.length
  return more > 0 ? [...names, `${more} more requests`] : names
}

module.exports = { formatPending, inspectablePending, printedWaits, sentences }
