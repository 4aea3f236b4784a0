'use strict'

// npm run docs: writes what is generated from the sources.

const fs = require('node:fs')
const path = require('node:path')
const { apiPage } = require('./api')
const { errorsPage } = require('./errors')
const { optionTypes, optionsPage } = require('./options')

const root = path.join(__dirname, '..', '..')

/** What makes each generated file. @type {Record<string, () => string>} */
const generators = {
  'lib/option-types.js': optionTypes,
  'docs/options.md': optionsPage,
  'docs/api.md': apiPage,
  'docs/errors.md': errorsPage
}

/** @param {string} name of a generated file @returns {boolean} it was written */
function update (name) {
  const file = path.join(root, name)
  const text = generators[name]()
  if (fs.existsSync(file) && fs.readFileSync(file, 'utf8') === text) return false
  fs.writeFileSync(file, text)
  return true
}

function main () {
  for (const name of Object.keys(generators)) {
    console.log(`${name}: ${update(name) ? 'written' : 'unchanged'}`)
  }
}

if (require.main === module) main()

module.exports = { generators }
