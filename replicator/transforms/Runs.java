package replicator.transforms;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.api.java.UDF9;

/**
 * The run of a record, and whether the record is an end of it (see replicator/transforms/runs.py). Runs are numbered
 * within a task; the number is followed by a bit for the greatest mark of its table so far, and a bit for the first
 * change that may fall.
 *
 * <p>Compiled on demand by Spark's own Janino (replicator/jvm/java_udfs.py), without lambdas and generics.
 */
public final class Runs implements UDF9 {
    private static final long serialVersionUID = 1L;
    private static final Long IN_QUESTION = Long.valueOf(-1L);
    private final int epoch;
    private final int major;
    private transient Map streams;
    private transient Run latest;
    private transient long task;
    private transient long runs;

    /** The number of characters of a place's epoch, and of its epoch with the major part of its position. */
    public Runs(int epoch, int major) {
        this.epoch = epoch;
        this.major = major;
    }

    /** The run and its bits; IN_QUESTION if the record is below the mark before it and is not a redelivery. */
    public Object call(Object topic, Object partition, Object stream, Object table, Object place, Object minusTime,
            Object offset, Object isSnapshot, Object transaction) {
        Run run = run((String) topic, (Integer) partition, (String) stream, ((Long) offset).longValue());
        Mark mark = new Mark((String) place, (Long) minusTime, (String) transaction);
        boolean isWatched = run.stream.length() > 0 && !((Boolean) isSnapshot).booleanValue();
        if (run.top == null || run.top.compareTo(mark) <= 0) run.top = mark;
        else if (isWatched && isInQuestion(mark, run.top)) return IN_QUESTION;
        long ends = (run.isGreatest((String) table, mark) ? 2L : 0L) | (isWatched && run.isFirst() ? 1L : 0L);
        return Long.valueOf(run.number << 2 | ends);
    }

    private Run run(String topic, Integer partition, String stream, long offset) {
        long attempt = TaskContext.get().taskAttemptId();
        if (streams == null || attempt != task) {
            streams = new HashMap();
            latest = null;
            task = attempt;
            runs = 0L;
        }
        if (latest == null || !latest.isOf(topic, partition, stream) || offset <= latest.offset) {
            String of = topic + "/" + partition + "/" + stream;
            latest = (Run) streams.get(of);
            if (latest == null || offset <= latest.offset) {
                latest = new Run(topic, partition, stream, runs++);
                streams.put(of, latest);
            }
        }
        latest.offset = offset;
        return latest;
    }

    /** Whether a change below a mark has a newer time, or a lower major part in the same transaction. */
    private boolean isInQuestion(Mark mark, Mark top) {
        if (mark.place.compareTo(top.place) >= 0) return false;
        if (mark.minusTime != null && top.minusTime != null && mark.minusTime.compareTo(top.minusTime) < 0) return true;
        boolean isOneTransaction = mark.transaction != null && mark.transaction.equals(top.transaction)
                && start(mark.place, epoch).equals(start(top.place, epoch));
        return isOneTransaction && start(mark.place, major).compareTo(start(top.place, major)) < 0;
    }

    private static String start(String place, int length) {
        return place.length() < length ? place : place.substring(0, length);
    }

    private static final class Run {
        private final String topic;
        private final Integer partition;
        private final String stream;
        private final long number;
        private final Map greatest = new HashMap();
        private Mark top;
        private boolean isBegun;
        private long offset;

        Run(String topic, Integer partition, String stream, long number) {
            this.topic = topic;
            this.partition = partition;
            this.stream = stream;
            this.number = number;
        }

        boolean isOf(String topic, Integer partition, String stream) {
            return this.partition.equals(partition) && this.topic.equals(topic) && this.stream.equals(stream);
        }

        boolean isGreatest(String table, Mark mark) {
            Mark before = (Mark) greatest.get(table);
            if (before != null && before.compareTo(mark) > 0) return false;
            greatest.put(table, mark);
            return true;
        }

        boolean isFirst() {
            boolean isFirst = !isBegun;
            isBegun = true;
            return isFirst;
        }
    }

    /** Marks are ordered as in transforms/watermarks.py; of equal ones the later record's is greater. */
    private static final class Mark {
        private final String place;
        private final Long minusTime;
        private final String transaction;

        Mark(String place, Long minusTime, String transaction) {
            this.place = place;
            this.minusTime = minusTime;
            this.transaction = transaction;
        }

        int compareTo(Mark other) {
            int placed = place.compareTo(other.place);
            if (placed != 0) return placed;
            if (minusTime == null) return other.minusTime == null ? 0 : -1;
            return other.minusTime == null ? 1 : minusTime.compareTo(other.minusTime);
        }
    }
}
