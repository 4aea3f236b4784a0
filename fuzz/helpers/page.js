'use strict'

// What a page of a report may hold: the elements of a page of nothing, and data that no browser executes.

const { CANARY } = require('./span-lines')

const ELEMENTS = /<(?:!--|\/?(?:script|style|noscript|head|body|html|meta|link|base|iframe|img|object))\b/gi

/** @param {string} page @returns {string} its elements that a file could bring */
const elementsOf = (page) => [...page.matchAll(ELEMENTS)].map(([tag]) => tag.toLowerCase()).join(' ')

/** @param {string} page @param {string} elements of a page of nothing */
function expectNoMarkup (page, elements) {
  if (elementsOf(page) !== elements) throw new Error(`the page has other elements: ${elementsOf(page)}`)
  if (page.includes(CANARY.slice(0, 12))) throw new Error('the page has a text of the file unescaped')
  const json = /<script type="application\/json" id="data">([^<]*)<\/script>/.exec(page)
  if (json === null) throw new Error('the data of the page is not found')
  JSON.parse(json[1])
}

module.exports = { elementsOf, expectNoMarkup }
