'use strict'

// Renders a report as one HTML file that needs no other and requests nothing. Its policy allows exactly the
// styles and scripts in it, by hash, and no connection at all. Data of spans is JSON inside an element that
// no browser executes, and becomes text, never markup.

const { createHash } = require('node:crypto')
const { app, charts, styles } = require('./assets')
const { fit } = require('./data')
const { createStaticPage, escape } = require('./static-page')

/**
 * @param {any} model of a report, see report/aggregate/model.js
 * @param {{ title?: string }} [options]
 * @returns {string} HTML
 */
function createPage (model, { title = 'longstack report' } = {}) {
  const { data, json } = fit(model, title)
  return pageOf({ title: data.title, json, scriptless: createStaticPage(data), main: './main' })
}

/**
 * Renders a page around data in JSON.
 * @param {object} parts
 * @param {string} parts.title
 * @param {string} parts.json without "<"
 * @param {string} parts.scriptless HTML that is shown where scripts do not run
 * @param {string} parts.main module of client/ that draws the page
 * @returns {string} HTML
 */
function pageOf ({ title, json, scriptless, main }) {
  const [style, library, code] = [styles(), charts(), app(main)]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy(style, [library, code])}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>${escape(title)}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<noscript>
${scriptless}
</noscript>
<div id="page"></div>
<script type="application/json" id="data">${json}</script>
<script>${library}</script>
<script>${code}</script>
</body>
</html>
`
}

/** @param {string} style @param {string[]} scripts */
function policy (style, scripts) {
  return [
    "default-src 'none'",
    `script-src ${scripts.map(hash).join(' ')}`,
    `style-src ${hash(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'", // turning text into markup is an error
    "trusted-types 'none'"
  ].join('; ')
}

/** @param {string} text */
function hash (text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

module.exports = { createPage, pageOf }
