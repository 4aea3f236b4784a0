'use strict'

/** Names of directories that Linux allows. */
const oddNames = [
  'a space', '50%25', 'a#b', 'what?a=b', 'ü漢字😀', "it's", 'back\\slash', 'line\nfeed', 'c:1:2', 'a)b', 'a(b'
]

module.exports = { oddNames }
