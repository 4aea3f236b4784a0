'use strict'

// Renders a profile as a page of its own: a flame graph of what ran, of what waited, or of both.

const { profileText } = require('../profile-text')
const { pageOf } = require('./index')
const { escape } = require('./static-page')

/**
 * @param {import('../../../lib/profile/profile').Profile} profile
 * @param {{ title?: string }} [options]
 * @returns {string} HTML
 */
function createProfilePage (profile, { title = 'longstack profile' } = {}) {
  const { pid, threadId, nodeVersion, startUnixMs, seconds, ranMs, sampleCount, tree, lacks } = profile
  const data = { title, pid, threadId, nodeVersion, startUnixMs, seconds, ranMs, sampleCount, tree, lacks }
  return pageOf({
    title,
    json: JSON.stringify(data).replace(/</g, '\\u003c'),
    scriptless: `<h1>${escape(title)}</h1>\n<pre>${escape(profileText(profile))}</pre>`,
    main: './profile'
  })
}

module.exports = { createProfilePage }
