'use strict'

// Renders a report or a profile as one self-contained HTML file that makes no requests. Its policy allows
// only its own style and script, by hash, and no connections. Span data is JSON inside an element that no
// browser executes, and becomes text, never markup. Without scripts, the page shows the report as text.

const { createHash } = require('node:crypto')
const { loadClient } = require('./build')
const { escapeInvisible, pack } = require('./client/pack')
const { fit } = require('./data')
const { profileText } = require('../profile')
const { report } = require('../text')

const TEXT = { width: 110, top: 100 }

/** @type {Record<string, string>} */
const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/**
 * @param {import('../../aggregate/model').Model} model
 * @param {{ title?: string }} [options]
 * @returns {string} HTML
 */
function createPage (model, { title = 'longstack report' } = {}) {
  const text = report(model, { ...TEXT, full: model.compare === undefined })
  return pageOf({ title, json: fit(model, title).json, text, script: 'report' })
}

/** @param {import('../../../lib/profile/profile').Profile} profile @returns {string} HTML */
function createProfilePage ({ chains, samples, ...profile }) {
  const title = 'longstack profile'
  const text = profileText({ chains, samples, ...profile })
  return pageOf({ title, json: pack({ title, ...profile }), text, script: 'profile' })
}

/**
 * @param {object} parts
 * @param {string} parts.title
 * @param {string} parts.json without "<"
 * @param {string} parts.text shown if scripts are disabled
 * @param {'report' | 'profile'} parts.script
 * @returns {string} HTML
 */
function pageOf ({ title, json, text, script }) {
  const { style, library, [script]: main } = loadClient()
  const code = `${library}${main}`
  const policy = [
    "default-src 'none'",
    `script-src ${hash(code)}`,
    `style-src ${hash(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'", // assigning a string as markup is an error
    "trusted-types 'none'"
  ]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy.join('; ')}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>${escape(title)}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<noscript>
<h1>${escape(title)}</h1>
<p>Charts, sorting and traces need JavaScript.</p>
<pre>${escape(text)}</pre>
</noscript>
<div id="page"></div>
<script type="application/json" id="data">${json}</script>
<script>${code}</script>
</body>
</html>
`
}

/** @param {string} text */
function escape (text) {
  return escapeInvisible(text).replace(/[&<>"']/g, (char) => entities[char])
}

/** @param {string} text */
function hash (text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

module.exports = { createPage, createProfilePage }
