'use strict'

// Requests that fail and share one path, while the other paths of the route succeed.

const { amount, text } = require('../../read/values')

const MAX_PATH_CHARS = 200
const MIN_FAILED = 10
const MIN_OTHERS = 10 // requests of other paths, none of which fails
const MAX_SUCCEEDED = 0.1 // relative to the path's failed requests

/** Requests of a route since its first failure. */
class FailedPath {
  /** @type {string | undefined} */
  path
  failed = 0
  succeeded = 0
  others = 0
  otherFailed = 0

  /** @param {import('../../read/span-line').Span} span */
  add ({ attributes, failed: isError, weight }) {
    const path = text(attributes['url.path'], MAX_PATH_CHARS)
    const status = amount(attributes['http.response.status_code']) ?? 0
    const hasFailed = isError && !(status >= 400 && status < 500) // those are client errors
    if (hasFailed) this.path ??= path
    if (this.path === undefined) return
    if (path !== this.path) this[hasFailed ? 'otherFailed' : 'others'] += weight
    else this[hasFailed ? 'failed' : 'succeeded'] += weight
  }
}

/**
 * Reports routes where all failed requests have one path, which fails nearly every time.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function failing ({ routes }) {
  return routes.flatMap(({ name, facts: { failedPath } }) => {
    const { path, failed, succeeded, others, otherFailed } = failedPath
    if (path === undefined || failed < MIN_FAILED || others < MIN_OTHERS || otherFailed > 0) return []
    if (succeeded > failed * MAX_SUCCEEDED) return []
    const figures = { path, failed: Math.round(failed), others: Math.round(others) }
    return [{ rule: /** @type {const} */ ('failing'), route: name, lostMs: 0, share: 0, figures }]
  })
}

module.exports = { FailedPath, failing }
