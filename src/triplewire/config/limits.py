"""Every limit that Triplewire sets, with its reason and its worst case."""

from __future__ import annotations

BODY_BYTES = 16 * 1024 * 1024
"""A publish body. One body is parsed in memory: at worst about six times this for one request."""

EXPANDED_BYTES = 64 * 1024 * 1024
"""A publish body as N-Quads. A long prefix used often makes a short body long; at worst 300 MB for one body."""

ITEM_HEAD_BYTES = 64 * 1024
"""The headers of one Ztreamy item: all that may be there, as long as they may be."""

EXTENSIONS = 32
"""Headers of its own that one event may have. They are stored and sent with it: at worst some 40 kB."""

EXTENSION_NAME_CHARACTERS = 128
"""The name of such a header."""

PROLOGUE_BYTES = 64 * 1024
"""Prefixes and bases that hold for later messages of a document. They are read again with each: some 500 prefixes."""

JELLY_FRAME_BYTES = 4 * 1024 * 1024
"""One frame of Jelly: at worst two million rows of nothing, which take some 150 MB for a moment."""

JELLY_ENTRY_CHARACTERS = 4 * 1024
"""One text in a table of Jelly. Three tables of 4,096 are kept while a stream comes: at worst 50 MB."""

PUBLISHERS = 2_000
"""Clients that keep publishing to one edge process by a request or a WebSocket of their own: some 100 kB each."""

PUBLISHING_UNDER_WAY = 8
"""Pieces of what such a client sends, up to 256 KiB each, that wait for the disk at a time. Then nothing more is read
from it."""

REFUSALS_TOLD = 100
"""Items of one body that are refused of which the answer tells why; the others it counts."""

NESTING = 128
"""Levels of JSON, XML or triple terms in a publish body. Parsers recurse: 20,000 levels overflowed the stack."""

IRI_CHARACTERS = 8_192
"""An IRI, or the base of a document. It is repeated wherever it is used, and each relative one is made from the base:
a base that grows with every step took a body of 3 MB minutes."""

XML_ATTRIBUTES = 256
"""Attributes of an XML element, with those of the elements around it. Each is compared with all others: 50,000 of them
took minutes."""

CONTEXT_BYTES = 128 * 1024 * 1024
"""What the contexts of one JSON-LD document take, where each holds those around it and its terms are written out: half
a second. 200 kB of text could fill memory."""

EVENT_QUADS = 100_000
"""Quads in one event. An event is matched whole in one worker; self-joins inside it may grow as the square."""

QUERY_BYTES = 1024 * 1024
"""SPARQL text. As much, of which only VALUES can be, takes the parser about three seconds."""

REMEMBERED_QUERY_CHARACTERS = 16 * 1024
"""A query whose algebra is remembered, 512 of them: longer ones would fill memory and are seldom asked twice."""

PATTERNS = 256
"""Triple patterns and steps of paths of one query. Each is a self-join of the quads table."""

QUERY_NESTING = 64
"""Levels of a query: groups, operators and expressions inside one another. Parser and compiler follow them by calls,
at most some ten for each; a thousand overflow the stack."""

QUERY_GROUPS = 4_096
"""Groups in braces of one query, branches of UNION among them. Each may become a sub-query of its own."""

QUERY_WINDOWS = 16
"""Windows of one continuous query. Each is kept, and whenever one closes the query is asked of all."""

QUERY_STREAMS = 10_000
"""Streams that a continuous query reads by way of others that publish into them: each is looked at when it is
registered, in some 50 µs, because it must not come to read what it publishes."""

QUERY_WINDOW_DAYS = 366
"""The range of a window of time, its step, or the gap that ends a session. What it holds has a limit of its own."""

QUERY_WINDOW_TRIPLES = 1_000_000
"""The range of a window that counts triples, or its step: at worst some 300 MB are kept."""

EXPRESSION_TERMS = 10_000
"""Variables, constants and calls in the expressions of one query. Each may become a kilobyte of SQL."""

REMEMBERED_SKELETONS = 4_096
"""Texts of subscriptions, without their constants, whose shape is remembered: at worst 16 kB of text each, 100 MB."""

REMEMBERED_SIGHTS = 4_096
"""What owners of subscriptions see, as it is remembered: a policy has some dozens of roles; at worst 100 MB."""

VIEWERS = 10_000
"""Different callers that are told apart among those who listen to the same: at most 10 MB. Where there are more, all of
them come in again when the policy changes, whether they see something else or not."""

SKELETON_CHOICES = 4
"""Sets of parameters that are remembered for one such text: each is a look-up more for every subscription."""

SKELETON_HOLES = 32
"""Constants of a text up to which each is tried by itself where all together decide nothing: as many parses."""

SUBSCRIPTION_BODY_BYTES = 1024 * 1024
"""The JSON that makes subscriptions."""

NARROWING_VALUES = 256
"""Streams, sources, applications or vocabularies that one subscription lists; each is a comparison with every event."""

SIEVE_VALUES = 64
"""Sources, applications, vocabularies or queries that one listener to a stream lists. Each is a comparison with every
event."""

SIEVES = 1_024
"""Different sieves through which an edge tells streams at the same time, however many listen through each: at some
20 µs for each and a pass, a pass takes 20 ms at worst, but for queries."""

SIEVE_CPU_SECONDS = 0.5
"""CPU time of one query of a sieve on one pass of events, for which all who listen through sieves wait. Who asks for
more is told so and cut off; a subscription can ask it."""

SIEVE_EVENT_SECONDS = 0.05
"""CPU time of such a query on one event that is looked at alone. Of an event that is not decided then, only that is
told."""

SIEVE_READY_SECONDS = 90.0
"""How long a listener waits for the index of such queries when nobody had one before: a second is usual, a minute where
the compiled code has to be made first."""

FILTER_PARAMETERS = 16
"""Parameters of a deployment's filter in one address."""

CHANGED_SUBJECTS = 100_000
"""Subjects of which the filter `changed` remembers the values, those that were told of last: at worst 50 MB for short
terms. One that is forgotten counts as new."""

BULK_LINES = 2_000
"""Subscriptions of a bulk that are made in one transaction: some 100 ms, for which publishers wait."""

BULK_BYTES = 4 * 1024 * 1024
"""Lines of a bulk that are held at once, and answers that wait in memory for its end; more of these go to the disk."""

BULK_SUBSCRIPTIONS = 1_000_000
"""Lines of one bulk. Its answers wait on the disk until all is read: at worst some 500 MB of errors."""

FILTERS = 64
"""Filters of one subscription, one of which must hold. Each becomes a branch of its SQL."""

FILTER_CONSTRAINTS = 32
"""Constraints of one filter. Each becomes a join of an event's quads."""

BAG_ELEMENTS = 32
"""Elements of a bag in a filter. Each is a bit of an integer for each value of an event, and a comparison."""

BAG_PAIRS = 4_000_000
"""Values of a batch times constants of bags that are held against each other at once where most of them may be in the
relation, as with `!=`: some 100 MB."""

BAG_LATE_ROWS = 500
"""Subscriptions with bags that are looked at for every event before they are sorted in, which costs as much as all."""

LEASE_SECONDS_LEAST = 10.0
"""The shortest `ttl` of a subscription: a few times as long as edges take to look after leases."""

LEASE_SECONDS_MOST = 30 * 24 * 3600.0
"""The longest `ttl` of a subscription: what nobody has wanted for a month is ended, or has no `ttl`."""

SWEEP_SECONDS = 2.5
"""Between two looks of an edge at leases: it reads those that may have run out, and no others."""

VERSIONS = 64
"""Versions of a subscription, one for each change to an ontology, of which the notifications can still be asked for."""

ONTOLOGY_BYTES = 8 * 1024 * 1024
"""An ontology as it is sent. It is parsed in memory, and every version of it stays in the registry."""

ONTOLOGY_TRIPLES = 100_000
"""Triples of one ontology. Whoever reads the registry's changes reads them: at worst about 20 MB of text."""

ONTOLOGY_PAIRS = 200_000
"""Pairs in one table of an ontology, which grow as the square of its depth: about 50 MB, made in a second."""

POLICY_BYTES = 256 * 1024
"""A policy as it is sent. It is read by every edge, and every version of it stays in the registry."""

POLICY_RULES = 256
"""Rules about seeing, and as many about publishing. All are looked at for each pair of name and roles that asks."""

POLICY_PATTERNS = 4_096
"""What these allow and deny in all. Each becomes a part of a condition in every query of those whom it concerns."""

CLOSURE_ROWS = 1_000_000
"""What follows from all ontologies together. Every worker makes it, in some seconds, and holds it: about 150 MB."""

SHAPES_BYTES = 1024 * 1024
"""The document of a stream's shapes, and a report on an event that does not conform."""

SHAPES_TRIPLES = 20_000
"""Triples of a stream's shapes: some thousand shapes."""

SHAPES_KNOWN = 64
"""Shapes that the process which judges holds compiled, some megabytes each at worst."""

SHAPES_EVENTS = 100
"""Events that are judged for one question: some milliseconds each."""

SHAPES_SECONDS = 10.0
"""For one question to the process that judges; one that takes longer is killed with it. A pattern may backtrack for
years."""

SHAPES_MEMORY_BYTES = 1024 * 1024 * 1024
"""Address space of the process that judges."""

SHAPES_WAITING = 64
"""Bodies that wait to be judged, of at most `BODY_BYTES` each."""

SHAPES_RESULTS = 20
"""Violations that a problem document tells of one by one; the report has them all."""

ENTAILMENT_ROWS = 20_000
"""Rows of an ontology that one pattern of a query is joined with. They become a part of its SQL: at worst 2 MB, which
take about four seconds to write."""

HEADER_CHARACTERS = 1024
"""An event's id, source or application as a header. They are repeated in every stored quad."""

STREAM_NAME_CHARACTERS = 128
"""A stream's name; it stands in every stored quad and in metrics labels."""

CLIENT_CONNECTIONS = 1_000
"""Connections of one client that are in use at a time at one edge, unless it is set: a fifteenth of those that there
may be, and more than any browser or program opens."""

CLIENT_REQUESTS = 1_000.0
"""Requests of one client in a second at one edge, unless it is set: some half of what an edge can publish."""

CLIENT_BYTES = 64.0 * 1024 * 1024
"""Bytes of bodies of one client in a second at one edge, unless it is set: more than an edge can take apart."""

CLIENT_BURST_SECONDS = 2.0
"""For how long a client that was quiet may have all of its rate at once."""

REMEMBERED_CLIENTS = 20_000
"""Clients of which an edge remembers how much they took: some 300 bytes each. The others count as if they were new."""

COMMIT_EVENTS = 20_000
"""Events in one transaction of the log. With events of 1 kB, 20 MB of write-ahead log at once."""

COMMIT_QUEUE = 1_024
"""Publishes that wait for their commit. Above it a publisher is told 503 and to try again."""

BATCH_EVENTS = 20_000
"""Events in one micro-batch. Bounds a worker's memory to about 100 MB, a batch to a few seconds."""

ONGOING_EVENTS = 60_000
"""Events in one micro-batch of continuous queries. Most of a batch is fixed cost, so that a backlog is taken in large
bites; a worker needs some 300 bytes for each."""

ONGOING_ROWS = 2_000_000
"""Partial results that may wait for one more triple at one pattern of a continuous query, in one station: some 500 MB.
A query that has more is suspended, with those that share the pattern."""

ONCE_ANSWERS = 2_000_000
"""Answers of a continuous query with set semantics that are remembered, so that none is told twice: some 200 MB. One
that has more is suspended."""

HEAVY_ROWS = 20_000
"""Triples under one key, such as all of one class, from which on they are spread over all stations."""

REORDER_TIMES = 8
"""How many times as often triples must come that begin a chain as those of a better one, before the chain is put in
another order: to do so takes the past in again."""

REORDER_COUNTED = 10_000
"""Triples that must have been counted before an order is decided again."""

REORDER_POSITIONS = 500_000
"""Positions of the past that are taken in again at most when a chain is put in another order: some ten seconds."""

OUTBOX_CHUNK_BYTES = 16 * 1024 * 1024
"""Matches that lie together in an outbox, unless they are of one position: those who tell them read them at once."""

ONGOING_TEXT_BYTES = 16 * 1024 * 1024
"""Text of the events in one micro-batch of continuous queries; one event more may begin within it. What follows from it
passes through the JVM, some five times as much, which has 640 MB for such things."""

BATCH_TEXT_BYTES = 32 * 1024 * 1024
"""Text of the events in one micro-batch; one event more may begin within it. As a table of quads it is about ten times
as much."""

STORE_EVENTS = 60_000
"""Events in one batch of `store` where it is behind: some two seconds. Workers do not hold them all at once."""

STORE_TEXT_BYTES = 96 * 1024 * 1024
"""Text of the events in such a batch; one event more may begin within it."""

FILE_EVENTS = 10_000
"""Events of a batch that a worker of `store` makes one file of: 400,000 quads at 40 in an event. It holds them all."""

FILE_TEXT_BYTES = 16 * 1024 * 1024
"""What of them is taken together, and what of a block goes over that: as tables of quads about ten times as much."""

SOLUTIONS = 10_000
"""Solutions of one subscription on one event that are told: a notification of some 2 MB. Of more it is only told that
there are so many. They are counted before DISTINCT, OFFSET and LIMIT where a query is patterns and filters alone."""

JOIN_ROWS = 1_000_000
"""Ways to give quads of an event to the patterns of a subscription, by their predicates alone. An event that has more
is looked at apart from its batch, with less patience."""

BATCH_CPU_SECONDS = 10.0
"""CPU time of the evaluator for one shape on one batch. What takes longer is cut in two, and again."""

EVENT_CPU_SECONDS = 0.005
"""CPU time for one shape on an event of those looked at apart, as long as they are taken together: what one by one
takes anyway."""

PAIR_CPU_SECONDS = 2.0
"""CPU time of the evaluator for one subscription on one event: about a hundred million rows of a join. Whoever is not
decided then is told so."""

SINGLE_STEPS = 20_000
"""Quads and pairs of solutions that are looked at for one subscription on one event where no query is planned for it:
about 10 ms, which is what planning would take. What is not decided then is for the evaluator."""

SINGLE_PAIRS = 400
"""Pairs of event and subscription of one shape in a batch that are looked at one by one, at some 40 µs each: a query
for all of them takes 5 to 30 ms before it looks at anything."""

EVALUATOR_MEMORY = "2GB"
"""Memory of the evaluator of one worker, its tables of constants included. Nothing is spilled to the disk."""

LANE_BATCH_SECONDS = 0.5
"""CPU time that the evaluator takes for one shape on a batch, for which all others wait, before it counts as
expensive."""

LANE_EVENT_SECONDS = 0.001
"""CPU time for one shape and event, on the average of a batch, below which a shape is not expensive: ten times what a
hundred usual ones take together."""

LANE_BATCHES = 3
"""Batches in a row in which a shape is expensive before it goes to the slow lane, where it stays."""

INDEX_FILE_BYTES = 16 * 1024**3
"""Each file of the index of subscriptions. It is mapped at this length and reserved as it grows; a hundred bytes and
more are in the largest for each subscription, so that they hold some 80 million."""

INDEX_CHANGES = 20_000
"""Changes of the registry that are read and taken into the index at once: some 50 MB."""

LEFT_SUBSCRIPTIONS = 100_000
"""Subscriptions that a worker keeps at hand for the events that the index leaves to the evaluator: some 100 MB."""

BLOCK_EVENTS = 5_000
"""Events that go through Spark as one row. More are no faster, and all of a block are in memory at once."""

BLOCK_BYTES = 8 * 1024 * 1024
"""Events of such a row, together; one that is larger goes alone."""

CLIENT_BUFFER_BYTES = 4 * 1024 * 1024
"""What may wait unsent for one listener. Above it the listener is told that it is too slow and cut off."""

LISTENERS = 15_000
"""Open listening connections of one edge process: below the usual limit of open files."""

QUERY_SECONDS = 30.0
"""From the first step of a SPARQL query over history to its last byte: a slow reader holds its process that long."""

QUERY_MEMORY = "2GB"
"""Memory of one SPARQL query over history. Nothing is spilled to the disk."""

QUERY_PROCESS_BYTES = 768 * 1024 * 1024
"""What a query's process may have beside that: code, stacks of threads, the answer's formatting."""

QUERY_ROWS = 1_000_000
"""Rows in the answer of one SPARQL query over history."""

ANSWER_BYTES = 1024**3
"""Bytes in the answer of one SPARQL query over history: a million rows of a kilobyte."""

QUERIES_AT_ONCE = 2
"""SPARQL queries over history that run at the same time, each in a process of its own; others wait their turn."""

CACHED_QUADS = 2_500_000
"""Quads of the lake up to which each process of queries holds a copy of them in memory: some 310 MB for a million,
however few bytes they take in files. A larger lake is read from its files."""

HIDINGS = 8
"""Sets of classes, hidden from some who ask, whose instances a process of queries keeps: some 100 bytes for each."""

CATCH_UP_QUADS = 200_000
"""Quads in new files of the lake that a query waits for until they are counted and copied: half a second. More than
that is made ready when there are no queries."""

PORTION_QUADS = 50_000
"""Quads of small files that are counted and copied at once: a query that comes meanwhile waits for that."""

PREPARE_SECONDS = 5.0
"""How often a process of queries that has nothing to do looks whether there is anything new in the lake."""

READS_SECONDS = 5.0
"""How often a process of queries writes down which zones it has read, if it has read any: a small file each time."""

READS_ZONES = 4_096
"""Zones of which it is remembered how often they were read, those that are read most: at worst 200 kB in each process
and in its file."""

RECORDED_QUADS = 100_000
"""New quads of the lake from which on a process of queries writes down what it has counted, for the next one: fewer are
counted again in a second."""

HASHED_QUADS = 20_000_000
"""Quads and events of which a process of queries remembers hashes, the newest, to know what is there only once: at
worst 160 MB. Of older ones it knows the greatest name of each predicate: what has a greater one was not there."""

ROSTER_BYTES = 32 * 1024 * 1024
"""What a process of queries remembers of the names in files that were asked for by name, of those that were asked for
last: one or two bytes for each name in a file."""

ROSTER_FILES = 8
"""Files that a name may lie in up to which nothing is remembered of them: they are opened in two milliseconds."""

ROSTER_NAMES = 16
"""Names in one condition up to which files are passed over by what is remembered of them. Of more, one is in nearly
every file."""

ROSTERS_WANTED = 4_096
"""Files that wait until a process of queries has nothing to do, and looks at the names in them: at worst 1 MB of
paths."""

QUERIES_WAITING = 64
"""SPARQL queries that wait for a process. Above it a client is told 503: at worst these wait for 16 minutes."""

QUERY_GRACE_SECONDS = 1.0
"""How long a process may take to give up a query that was cancelled or ran out of time. Then it is killed."""

WORKER_START_SECONDS = 30.0
"""How long the process of queries may take to start; half a second is usual."""

CHUNK_BYTES = 64 * 1024
"""One piece of an answer on its way out. A few of them are all that an edge holds of one answer."""

BATCH_BYTES = 4 * 1024 * 1024
"""Terms that are formatted at once; a formatter needs about eight times as much for a moment."""

GATHER_SECONDS = 0.02
"""What an engine finds in this time goes out together; who waits for the first row does not notice it."""

BATCH_ROWS = 8_192
"""Solutions that an engine hands over at once: the first of them leave when so many are known, or all."""

DATASET_GRAPHS = 256
"""Graphs that the parameters of one request name; each is a comparison with every quad."""

SERVICE_SECONDS = 10.0
"""How long another endpoint may take for one SERVICE; the time of the query goes on meanwhile."""

SERVICE_BYTES = 8 * 1024 * 1024
"""What another endpoint may answer; it is parsed in memory: at worst about eight times this."""

SERVICE_ROWS = 10_000
"""Solutions of one SERVICE. They become a part of the query's SQL."""

RANGE_CHARACTERS = 192
"""Of the least and the greatest text of a column, in the account that the lake's table gives of a file: IRIs tell
themselves apart late. At worst some 8 kB for each file, which every reader of the table holds."""

FRESH_FILES = 64
"""Fresh files of the lake from which on they are sorted into zones: a query reads all of them, some 20 ms."""

COMPACTED_QUADS = 1_000_000
"""Quads that are sorted into zones at once. They are in the memory of a worker then: some 400 MB."""

TASK_QUADS = 100_000
"""Quads that one task of the housekeeping sorts, about: half a second, for which other tasks may wait."""

FILES_WANTED = 2_000
"""Files that hold the whole lake, about: fewer tell a query less of where it must look, more take longer to list."""

FILE_QUADS = 2_048
"""Quads of a file of a small lake. Fewer would take more bytes each."""

SAMPLED_FILES = 8
"""Files of a zone that are looked into to decide where it is cut: they are spread over time, and take some 20 ms."""

SMALL_FILES = 32
"""Files of one zone that are smaller than they should be and still do not become one, because their sizes differ."""

TRAVEL_HOURS = 24
"""For how long older versions of the lake can be read, unless set otherwise. A commit a second is 86,400 small files
of the table's log in a day."""

HOUSE_SECONDS = 2.0
"""Between two looks of the housekeeper at the lake: as often as it grows by a few files."""

HOUSE_PAUSE_SECONDS = 30.0
"""What the housekeeper waits when something failed, as with a full disk, before it tries again."""

RETAIN_SECONDS = 3_600.0
"""Between two looks at what is too old, at least: each that finds something begins every reader's copy anew."""

FLOORS = 1_000
"""Streams that lose events to retention at once of which it is noted how far: each is a line in the table's log for
good. Of more of them it is noted together."""

CHECKPOINT_COMMITS = 100
"""Commits of the lake after which its state is written down: who opens it reads so many at most, in some 20 ms."""

VACUUM_SECONDS = 3_600.0
"""Between two times that what nobody reads goes from the disk."""

LOG_AGE_SECONDS = 7 * 24 * 3600.0
"""How long the log keeps events for consumers that resume. The lake keeps them for good."""

LOG_BYTES = 8 * 1024**3
"""How much event text the log keeps at most."""

NAMES_RUN = 2**20
"""Ids given by publishers that are sorted in memory together, to find those that come again: at worst some 200 ms for
which publishers wait. All of the log are in memory, 16 bytes each: some 200 MB for 8 GiB of small events."""

TRIM_EVENTS = 1_000
"""Log entries that one transaction drops. Appends wait for it: some 10 ms with events of 1 kB."""

ERASE_EVENTS = 10_000
"""Positions of the log that are looked through at once for what is to be erased: under 100 ms with events of 1 kB, and
what of them goes is one transaction, for which appends wait."""

LEFTOVER_SECONDS = 600.0
"""From when on a data file of the lake without an end, that nobody has written to, counts as left behind by a crash. A
task writes its file within seconds."""

INLINE_BYTES = 16 * 1024
"""A publish body that is parsed on the event loop; a larger one goes to a thread, so that nobody waits for it."""

PAGE_EVENTS = 20_000
"""Events in one page of `GET /events`: read and written in some 50 ms, while listeners wait for a reader's thread."""

PAGE_BYTES = 8 * 1024 * 1024
"""Text of the events in one page; one event more may begin within it. An edge holds it twice while it is written."""

LEAF_EVENTS = 500
"""Events of a stream that are one page of its history: read and written in some 20 ms, and some 300 kB of text. Who
follows a stream by its pages reads the newest again and again, half full on average."""

LEAF_BYTES = 1024 * 1024
"""Text of events from which on such a page is full; the last of them may go over it."""

LEAF_GAP = 64
"""Positions of other streams between two events of a page, from which on they are not read with it: 32,000 at worst in
one page, some 50 ms. What is noted of a gap are 16 bytes or so, for at least as many events."""

LEAF_SECONDS = 86_400
"""For how long a page that is full may be cached: it does not change, but for what is erased or kept no more, and so
long caches may still have that."""

LEAF_OPEN_SECONDS = 2
"""For how long one may be cached that is not full yet: who follows by pages is behind by so much."""

SAMPLE_SECONDS = 60.0
"""For how long it is taken as known what is in the newest page of a stream: it costs some 10 ms to look."""

SAMPLES = 1_000
"""Streams of which that is remembered, for each who sees them differently: some 10 MB."""

SAMPLE_TERMS = 100
"""Predicates, and classes, that are told of a stream or of all: the most frequent."""

CATALOGUE_STREAMS = 100
"""Streams in one answer of a catalogue: a second at worst, if nobody has asked before."""

CATALOGUE_SECONDS = 10
"""For how long a catalogue may be cached."""

ABOUT_CHARACTERS = 4_000
"""Of a text that is said about a stream, which stands in every catalogue."""

ABOUT_KEYWORDS = 100
"""Keywords of a stream."""

LEAF_FAN = 100
"""Pages, or nodes, that a node of the tree over them names: 10,000 pages are two steps from the first node, 1,000,000
three. Some 40 kB of relations."""

SPARK_PART_BYTES = 16 * 1024 * 1024
"""Files of the lake that one task of a Spark program reads: some seconds, and at worst about 500 MB for events, which
are put together in memory."""

SPARK_PART_EVENTS = 50_000
"""Positions of a broker's log that one task of a Spark program reads: a few pages."""

SPARK_ROWS = 10_000
"""Rows of one Arrow batch that a task hands to Spark: as many as Spark makes of its own."""

SPARK_BODY_EVENTS = 1_000
"""Events that a task publishes with one request. One that is refused is looked for by halves, in ten steps."""

SPARK_BODY_BYTES = 1024 * 1024
"""Text of the events of one such request, and what of one event goes over that."""

SPARK_REQUESTS = 8
"""Such requests of one task that are under way at a time; they share the broker's group commits."""

SPARK_ATTEMPTS = 5
"""Times that such a request is sent to a broker that is busy or does not answer, within some three seconds."""

SPARK_FAILURES = 20
"""Refused events that a report names, with the reason; the others it counts."""

TRACED_EVENTS = 128
"""Events of one batch, or of one pass of a feed, of which spans are told: a collector is told of examples. A batch of
20,000 traced events would be 20,000 spans at once, of which the queue of the exporter holds 2,048."""

HISTORY_EVENTS = 1_000
"""Events in one step of a replay, and in one pass over the live listeners: about 10 ms, 1 MB for events of 1 kB."""

MEMORY_BYTES = 8 * 1024 * 1024
"""Entries of streams that an edge remembers for those who come back, of all streams together, unless set otherwise:
half an hour of a stream with 10 events of 500 bytes a second."""

MEMORY_SECONDS = 60.0
"""For how long an edge goes on remembering a stream that nobody listens to any more: who was cut off comes back within
seconds."""

LISTENER_SECONDS = 15.0
"""Between two comments that keep an idle connection open and find out those that are gone."""

SOCKET_BYTES = 64 * 1024
"""A message of a client over a WebSocket, which says little."""

GATHERED = 256
"""Subscriptions and streams that one connection listens to. Each may hold a step of its history, while others that are
behind are waited for."""

POLL_SECONDS = 30.0
"""How long a client that polls waits for something to come, unless it says otherwise. Many proxies give up at 60."""

POLL_SECONDS_MOST = 300.0
"""How long it may wait."""

ACK_MESSAGES = 256
"""Messages that a client over a WebSocket may leave unacknowledged, where it acknowledges at all."""

ACK_BYTES = 1024 * 1024
"""Bytes of such messages, and what of one goes over that: what is sent again at worst when a client is cut off."""

ACK_SECONDS = 60.0
"""How long a client that acknowledges may stand still with all of that before it is told that it is too slow."""

HEAD_SECONDS = 30.0
"""From the first byte of a request, or from the opening of a connection, to the end of the first head: a client that
lets it trickle holds a connection. Any real one sends it at once."""

HEADERS = 128
"""Headers of one request; with their limit of length at worst a megabyte."""

BODY_SECONDS = 30.0
"""For a body, beside what it has for its length; not for those who keep publishing, of whom there are few."""

BODY_RATE = 1024
"""Bytes of a body in a second, at least, on the average: slower than any line that is in use. The longest body may take
some four hours then, of which it sends all the time."""

READING_SECONDS = 60.0
"""For how long a client need not take a byte of an answer that waits for it: at worst a page of 8 MiB and more for
each of its connections. Listeners have a limit of their own in bytes."""

PATIENCE_LOOK_SECONDS = 5.0
"""How often connections are looked at for these: some 5 ms for 15,000."""

KEEP_ALIVE_SECONDS = 75.0
"""For how long a connection stays open on which nothing is asked: longer than the minute of most proxies, which so are
the ones to close it."""

FAREWELL_SECONDS = 5.0
"""How long a connection that is being closed may take to read what it was sent last."""

WINDOW_SECONDS = 0.5
"""How long messages of a stream may wait for others, unless it is set. They wait so long only under full load."""

WINDOW_SECONDS_MOST = 60.0
"""What a window may be set to."""

WINDOW_BYTES = 1024 * 1024
"""What waits in a window at most: more of it goes out at once, and packs no better."""

CONTEXT_SECONDS = 5.0
"""Between two contexts of compression that listeners share, at least, where newcomers wait to join: a new one has to
learn what the last one knew, some 32 kB."""

CONTEXT_LISTENERS = 4
"""Listeners of one channel from which on they share a context, of some 300 kB with what goes with it. For fewer each
message is packed by itself."""

RETRY_MILLISECONDS = 500
"""When those that are sent away because an edge stops are to come back: another is there at once, as a rule."""
LEAVE_SECONDS = 1.0
"""How long an edge that is leaving, and accepts nothing more, answers requests that still come by connections that are
open. Then it closes those on which nothing is going on."""

STEER_SECONDS = 1.0
"""How long an edge that is not replaced goes on to accept connections after new ones are led to the others: as long as
a connection may take to be made."""

RESTART_SECONDS = 60.0
"""How long the replacement of one edge may take before `triplewire restart` gives up: a few seconds are usual."""

EDGE_BUSY = 0.7
"""The share of a core that edges use on the average, or of their seats that are taken, from which on one more of them
is started: above it, what comes in bursts waits."""

EDGE_BUSY_SECONDS = 5.0
"""How long that must have been so. An edge takes a second to start."""

EDGE_CALM = 0.35
"""The same share, if there was one edge less, up to which one goes: half of what would bring it back."""

EDGE_CALM_SECONDS = 60.0
"""How long that must have been so: those who listen to the edge that goes must come back, and it may be needed soon."""

LOG_TAIL_SECONDS = 0.005
"""How often an edge looks whether another process has published. What it publishes itself it knows at once."""

TAIL_SECONDS = 0.015
"""Between two looks of an edge at an outbox; it is added to the delay of a notification."""

LAGGING_SECONDS = 5.0
"""An unmatched event that is older than this makes health say `lagging`."""

PAGE = 1_000
"""Subscriptions in one page of their list."""

BALANCE_MARGIN = 0.2
"""How much more listeners than the mean of the edges on its port an edge may have, as a share of the mean."""

BALANCE_LEAST = 100
"""And how many more at least before any of them is sent away: fewer are no load."""

BALANCE_SECONDS = 10.0
"""How long that must have been so. Listeners that come back after a restart need some seconds."""

BALANCE_SHARE = 0.05
"""Of its listeners, how many it sends away in a second at most: they come to the others together."""

REMEMBERED_STREAMS = 1_000
"""Streams that nobody listens to any more of which an edge remembers what flowed out: some 300 bytes each."""

METRICS_STREAMS = 50
"""Streams that metrics tell apart, those with the most clients; the others are told together. Each is seven samples."""

REMEMBERED_SUBSCRIPTIONS = 20_000
"""Subscriptions that an edge remembers after their listeners left: about 1 kB each, more than its listeners."""

COMMIT_QUEUE_BYTES = 128 * 1024 * 1024
"""Text of the publishes that wait for their commit: their count alone would allow 16 GiB of large bodies."""

EXPLAIN_SECONDS = 10.0
"""How long the explanation of one match may take. Each part of the query is asked by itself: some 20 ms each."""

EXPLAIN_MEMORY = "512MB"
"""Memory of one explanation. Nothing is spilled to the disk."""

EXPLAIN_EXAMPLES = 3
"""Quads, or solutions that a filter removed, that are shown of each step of an explanation."""

RETROSPECT_POSITIONS = 100_000
"""Positions of the log, the newest, that are looked through for a dry run, or for an event by its id: some seconds."""

RETROSPECT_BATCH = 2_000
"""Positions that are read at once then: about 2 MB for events of 1 kB, 20 ms to match."""

REHEARSAL_SECONDS = 5.0
"""How long a dry run looks at events of the last hour. It then tells of those that it has seen."""

REHEARSAL_EXAMPLES = 3
"""Events that would have matched, told of by a dry run."""

PAST_EVENTS = 5_000
"""Events that are matched at once for a subscription that asks for the past: some 60 ms of a core, most of which are
taken for fewer, too."""

PAST_BYTES = 4 * 1024 * 1024
"""Text of such events, and what of one of them goes over that. About eight times as much is in memory for a moment."""

PAST_FILES = 32
"""Files of the lake that are opened at once for that: some 50 ms at worst, where each holds little."""

SOUGHT_FILES = 256
"""Files of the lake, the newest that may have it, that are opened to find an event by its id: under a second."""

PASTS_AT_ONCE = 2
"""Steps through the past that an edge takes at the same time, each some 50 ms of a core. Other listeners wait their
turn after every step."""

PASTS_REMEMBERED = 8
"""Subscriptions whose past is being read that are kept ready for the next step: about 20 MB each. Others are made ready
again, in some 50 ms."""

ZONES = 128
"""Zones of the lake at most. More would tell a question with a constant more, one about an hour less: a zone has fewer
files then, of which each is a longer stretch of time. A compaction writes a file for each."""

ZONE_QUADS = 32_768
"""Quads under which a zone is not split: a few files, which take some ten milliseconds to read."""

ZONE_SAMPLE = 100_000
"""Quads that are looked at to decide where zones are cut: about 60 MB while that lasts, and some seconds."""

CENTROID_CHARACTERS = 96
"""How many of a key's first characters count for a mean of keys. Most IRIs are shorter."""

EXPORT_EVENTS = 50_000
"""Events, or positions, that an export reads at once, and after which it can go on."""

EXPORT_BYTES = 32 * 1024 * 1024
"""Text of such events. About ten times as much is in memory for a moment."""

IMPORT_BYTES = 1024 * 1024
"""What an import reads of a file at once; one event more may begin within it."""

IMPORT_EVENTS = 5_000
"""Events that an import publishes at once, of at most as many bytes as it reads: a transaction of some 50 ms, after
which it can go on."""

IMPORT_ATTEMPTS = 5
"""How often an import publishes the same events before it gives up where the broker does not answer. It waits a second,
then twice as long each time."""

FAULTS_SHOWN = 20
"""Faults of a file that are told one by one on a terminal; the others are counted, and are in the file of rejects."""

RELAY_EVENTS = 500
"""Events that a relay publishes at once: a transaction of some milliseconds. What came while it was under way is the
next."""

RELAY_BYTES = 1024 * 1024
"""Their bodies. Twice as much may have been heard and wait, for each strand; then the edge above waits."""

RELAY_STRANDS = 256
"""Tables in the file of a relay. Each has a connection of its own to the edge above."""

RELAY_HOPS = 16
"""Streams through which an event may come to another. More are a mistake that no loop explains."""

RELAY_PAUSE_FIRST = 0.2
"""Seconds at most before a relay tries again what has just failed; twice as long each time."""

REPEATERS = 256
"""Relays that an edge listens to when they tell of themselves; each is a small file."""

REPEATER_SECONDS = 15.0
"""How long an edge believes what a relay told: a relay says it again three times meanwhile."""

REPEATER_LOOK_SECONDS = 1.0
"""Between two looks at what other edges over the same directory were told."""

REPEATER_FULL = 0.9
"""How busy a repeater may be that somebody is sent to."""

PRESSURE_SEATS = 0.8
"""Share of the seats from which on newcomers are sent to repeaters, and some listeners are moved."""

PRESSURE_WORK = 0.85
"""Share of its time in which the event loop works, from which on the same is done; the rest is for peaks."""

PRESSURE_SECONDS = 5.0
"""How long it must have been so: a peak is no reason to send anybody away."""

MOVE_LOOK_SECONDS = 1.0
"""Between two looks at whether some are to be moved."""

MOVE_SHARE = 0.05
"""Of the listeners of a stream that are moved at once: they come to another edge together."""

MOVE_SPREAD_MILLISECONDS = 1_000
"""Over which they are to come there, each at a time of its own."""

LATEST_STREAMS = 10_000
"""Streams whose last event is known by its id, so that listeners can be moved: some 3 MB."""

ARRIVAL_SECONDS = 5.0
"""How long an edge waits for the event after which a moved listener goes on; relays are behind by milliseconds."""

ARRIVAL_LOOKS = 10
"""How often it looks meanwhile."""

RELAY_PAUSE_LONGEST = 15.0
"""Seconds at most between two attempts, however many have failed: an edge that is back is found within them."""

TOKENS = 10_000
"""Tokens that there may be, revoked ones among them: some 10 MB in each edge. Those that are good for nothing make
room."""

TOKEN_GRANTS = 64
"""Grants and roles of one token: each is looked at in a request."""

TOKEN_CHARACTERS = 256
"""The name of a token, and each of its grants and roles."""

TOKEN_BODY_BYTES = 64 * 1024
"""The JSON that asks for a token: all that it may have."""

VERIFIED_TOKENS = 10_000
"""Signed tokens of others that are remembered as checked: a signature takes some 0.2 ms. Some 10 MB at worst."""

KEYS_BYTES = 1024 * 1024
"""A set of public keys. Real ones have a few kB."""

KEYS_TIMEOUT_SECONDS = 10.0
"""How long a set of keys may take to come."""

KEYS_SECONDS = 600.0
"""After which a set of keys is read again, so that a key that was taken back is not believed for longer."""

KEYS_PAUSE_SECONDS = 60.0
"""Between two readings for keys that are not known: anybody can name one, and must not make us ask each time."""

KEYS_RETRY_SECONDS = 5.0
"""Between two readings of which the first failed."""

GUEST_LOOK_SECONDS = 0.1
"""Between two looks at whether a token was revoked by which somebody is connected: some microseconds each."""

EXPIRY_LOOK_SECONDS = 1.0
"""Between two looks at whether one has expired: a few milliseconds with as many listeners as there may be."""

AUDIT_BYTES = 16 * 1024 * 1024
"""A volume of the audit log, some 60,000 lines; then another is begun."""

AUDIT_VOLUMES = 16
"""Volumes that are kept of each of its two books: at most 256 MB of each."""

AUDIT_SECONDS = 0.2
"""How long lines of the audit log that nobody waits for are collected."""

AUDIT_WAITING = 10_000
"""How many of them may wait; others are counted. It takes 50,000 refusals in a second to get there."""

AUDIT_CHARACTERS = 512
"""What a line of the audit log says of an address."""

CERTIFICATE_LOOK_SECONDS = 1.0
"""Between two looks at whether the files of a certificate were replaced: two calls of the system."""

HOOK_URL_CHARACTERS = 2_048
"""Of the address of a hook. Servers take no longer ones, as a rule."""

HOOK_SECONDS = 15.0
"""How long a call of a hook may take, from the search for its address to the last byte of the answer. What takes longer
is to be answered before it is done."""

HOOK_CONNECT_SECONDS = 5.0
"""Of these, how long the connection may take to be made."""

HOOK_CALLS = 512
"""Calls of hooks under way at a time to targets that answer, each a socket and some 30 kB."""

HOOK_CALLS_ILL = 128
"""The same to targets that did not answer the last time, apart from the others, who therefore never wait for them."""

HOOK_CALLS_TARGET = 16
"""Calls under way at a time to one host and port, so that nobody is overrun by us."""

HOOK_ATTEMPTS = 15
"""How often a message is tried before it is parked: over some four hours, with the pauses below."""

HOOK_ATTEMPTS_MOST = 100
"""The same, where a hook says so: over some four days."""

HOOK_PAUSE_FIRST = 1.0
"""Seconds at most before a message is tried again the first time; twice as long each time."""

HOOK_PAUSE_LONGEST = 3_600.0
"""Seconds at most between two attempts, unless the target asks for more."""

HOOK_RETRY_AFTER = 86_400.0
"""Seconds that a target may ask for at most: longer ones would be a way to make us remember for ever."""

HOOK_LETTERS = 10_000
"""Messages of one hook that are parked, some 100 bytes each. Where there are as many, the next is not parked but tried
for as long as it takes."""

HOOK_ANSWER_BYTES = 65_536
"""Read of what a target answers, so that the connection can be used again. Nothing of it is kept."""

HOOK_LOOK_SECONDS = 0.25
"""Between two looks at which hooks there are, and whose turn it is to deliver: that long a new one waits at most."""

HOOK_NOTE_SECONDS = 30.0
"""Between two notes of how far hooks are to which nothing was delivered, so that what they have not missed is not taken
for lost when the log lets it go."""

WEBSUB_LEASE_SECONDS = 864_000
"""How long a subscription by WebSub lasts where the subscriber does not say: ten days, as the standard suggests."""

WEBSUB_LEASE_SECONDS_LEAST = 60
"""How long at least, whatever is asked for: each renewal is a change of the registry."""

WEBSUB_LEASE_SECONDS_MOST = 2_592_000
"""How long at most: who is there no more is forgotten after a month."""

WEBSUB_SECRET_BYTES = 200
"""A secret has fewer bytes, as the specification has it."""

WEBSUB_BODY_BYTES = 16_384
"""Of the form by which somebody subscribes: two addresses and a secret."""

WEBSUB_INTENTS = 64
"""Subscribers that an edge is asking at a time whether they meant it."""

WINDOW_GRACE_SECONDS = 0.5
"""After the end of a window by arrival time, until it closes though nothing more came: an event that was received
before may yet be on its way to the disk. One that takes longer counts for the next window."""

WINDOW_IDLE_SECONDS = 5.0
"""Of a stream of which nothing came for so long the watermark follows the clock, so that windows close by event time,
too. Other streams of the same query do not wait for it."""

WINDOW_TRIPLES = 1_000_000
"""That are kept for the windows of one continuous query: at worst some 500 MB. With more it is suspended."""

WINDOW_SLACK_TRIPLES = 10_000
"""Of one stream that no window needs any more, until they are forgotten; else a quarter of all. To forget some means to
copy the others, 20 ms for 100,000."""

WINDOW_MEMORY = "2GB"
"""What the engine of all windows of one worker takes. A query that needs more is suspended."""

WINDOW_CPU_SECONDS = 30.0
"""CPU time of a query on its windows when one closes. Others wait meanwhile; a query that takes more is suspended."""

WINDOW_ROWS = 10_000
"""Solutions of a query on its windows, which make one event. A query with more is suspended."""

WINDOWS_TOLD = 256
"""How often a query is asked in one batch: after a pause, windows close one after the other in several batches. Of
those in a row that hold the same, so many at most are told, the newest."""

REVISED_WINDOWS = 1_000
"""Windows, by their steps, that are kept to be told again when something comes late; no longer than they are wide."""

BACKGROUND_QUADS = 500_000
"""What a query with windows reads outside of them, loaded when it is registered: at worst some 250 MB for each."""
