"""The source: `triplewire` as a format of Spark's."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from triplewire.spark.options import Options, options_of
from triplewire.spark.origins import Origin
from triplewire.spark.readers import FilteringReader, Reader, StreamReader
from triplewire.spark.schemas import SCHEMAS, check_part, part_of
from triplewire.spark.writers import StreamWriter, Writer, publisher_of

NAME = "triplewire"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


class TriplewireSource(DataSource):
    """Events or quads of a lake or of a running broker, as a batch or as a stream; and a broker to publish to."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        options = self._options()
        whole = SCHEMAS[options.what]
        return part_of(whole, options.columns) if options.columns else whole

    def reader(self, schema: StructType) -> Reader:
        options = self._options()
        check_part(SCHEMAS[options.what], schema)
        made = FilteringReader if options.pushdown else Reader
        return made(_origin(options), options, schema)

    def streamReader(self, schema: StructType) -> StreamReader:
        options = self._options()
        check_part(SCHEMAS[options.what], schema)
        return StreamReader(_origin(options), options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> Writer:
        return Writer(publisher_of(dict(self.options), schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        return StreamWriter(publisher_of(dict(self.options), schema, overwrite))

    def _options(self) -> Options:
        return options_of(dict(self.options))


def register(spark: SparkSession) -> None:
    """Make the format known to a session, and have the session hand filters down to it, which is not Spark's default.

    Where Triplewire is installed for the driver Spark finds the format by itself, and only the setting is needed.
    """
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(TriplewireSource)


def _origin(options: Options) -> Origin:
    # Of the two only one is loaded: a broker needs no table, and files no client.
    if options.path is not None:
        from triplewire.spark.tables import TableOrigin

        return TableOrigin(options)
    from triplewire.spark.brokers import BrokerOrigin

    return BrokerOrigin(options)
