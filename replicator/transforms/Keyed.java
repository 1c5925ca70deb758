package replicator.transforms;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.api.java.UDF3;

/**
 * The numbers of partitions with which Kafka's own partitioner would have put all records of a topic seen by this task
 * where they are, by their keys: a bit for each number up to 63 (replicator/transforms/runs.py).
 *
 * <p>Compiled on demand by Spark's own Janino (replicator/jvm/java_udfs.py), without lambdas and generics.
 */
public final class Keyed implements UDF3 {
    private static final long serialVersionUID = 1L;
    private static final int SEED = 0x9747b28c;
    private static final int FACTOR = 0x5bd1e995;
    private transient Map left;
    private transient long task;

    /** A record without a key may be in any partition: no number fits. */
    public Object call(Object topic, Object partition, Object key) {
        long attempt = TaskContext.get().taskAttemptId();
        if (left == null || attempt != task) {
            left = new HashMap();
            task = attempt;
        }
        long[] fitting = (long[]) left.get(topic);
        if (fitting == null) {
            fitting = new long[] {-2L};
            left.put(topic, fitting);
        }
        fitting[0] &= key == null ? 0L : kept(fitting[0], (byte[]) key, ((Integer) partition).intValue());
        return Long.valueOf(fitting[0]);
    }

    private static long kept(long fitting, byte[] key, int partition) {
        int hash = murmur2(key) & 0x7fffffff;
        long kept = fitting;
        for (long rest = fitting; rest != 0L; rest &= rest - 1L) {
            int count = Long.numberOfTrailingZeros(rest);
            if (hash % count != partition) kept &= ~(1L << count);
        }
        return kept;
    }

    /** 32-bit MurmurHash2 with Kafka's seed. */
    static int murmur2(byte[] text) {
        int hash = SEED ^ text.length, at = 0;
        for (; at + 4 <= text.length; at += 4) {
            int word = text[at] & 0xff | (text[at + 1] & 0xff) << 8 | (text[at + 2] & 0xff) << 16 | text[at + 3] << 24;
            word *= FACTOR;
            hash = hash * FACTOR ^ (word ^ word >>> 24) * FACTOR;
        }
        if (at < text.length) {
            for (int place = text.length - 1; place >= at; place--) hash ^= (text[place] & 0xff) << 8 * (place - at);
            hash *= FACTOR;
        }
        hash = (hash ^ hash >>> 13) * FACTOR;
        return hash ^ hash >>> 15;
    }
}
