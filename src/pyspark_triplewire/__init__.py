"""Where Spark looks for formats that are installed: packages whose names begin with `pyspark_`."""

from triplewire.spark.dataframes.data_source import TriplewireSource as DefaultSource

__all__ = ["DefaultSource"]
